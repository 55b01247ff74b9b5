#!/bin/sh
# Starts a node: takes over the configuration, and the key for secrets that all nodes share.
set -eu
umask 077
SVC_STORE_URL="postgres://sluice:$(cat /run/secrets/postgres-password)@postgres/sluice"
export SVC_STORE_URL
cp /config.toml /data/config.toml
# Attachments and kept results are those of all nodes.
[ -e /data/files ] || ln -s /shared/files /data/files
[ -s /data/secret.key ] || cp /shared/secret.key /data/secret.key
exec sluice daemon
