/** Opens and closes what is folded; without it the page can be read all the same. */
export const pageScript = `
const all = () => document.querySelectorAll("details");
document.getElementById("open").addEventListener("click", () => all().forEach((one) => { one.open = true; }));
document.getElementById("close").addEventListener("click", () => all().forEach((one) => { one.open = false; }));
const reveal = () => {
  const target = document.getElementById(location.hash.slice(1));
  if (target instanceof HTMLDetailsElement) target.open = true;
};
addEventListener("hashchange", reveal);
reveal();
`;
