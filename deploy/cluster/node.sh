#!/bin/sh
# Starts a node: takes over the configuration, and the key for secrets that all nodes share.
set -eu
umask 077
SVC_STORE_URL="postgres://sluice:$(cat /run/secrets/postgres-password)@postgres/sluice"
export SVC_STORE_URL
cp /config.toml /data/config.toml
# One node makes the key: the first that makes the folder.
if mkdir /shared/key 2>/dev/null; then
  head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >/shared/key/part
  mv /shared/key/part /shared/key/secret.key
fi
until [ -s /shared/key/secret.key ]; do sleep 1; done
[ -s /data/secret.key ] || cp /shared/key/secret.key /data/secret.key
mkdir -p /shared/workspace
exec sluice daemon
