# Retinue without root: docker run --rm -it -v "$PWD:/workspace" -e ANTHROPIC_API_KEY retinue -p "what is here"
FROM node:24-bookworm-slim AS build
WORKDIR /src
COPY . .
RUN npm ci && npm pack --pack-destination /pack

FROM node:24-bookworm-slim
RUN apt-get update \
  && apt-get install -y --no-install-recommends bubblewrap ca-certificates git socat \
  && rm -rf /var/lib/apt/lists/*
COPY --from=build /pack/*.tgz /tmp/
RUN npm install --global --omit=dev /tmp/retinue-*.tgz && rm -f /tmp/*.tgz && npm cache clean --force \
  && install -d -o node -g node /workspace
USER node
WORKDIR /workspace
ENTRYPOINT ["retinue"]
