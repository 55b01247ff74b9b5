#!/bin/sh
# Makes what all nodes share, before the first of them starts: the key for secrets, and the folders of the workspace and of attachments.
set -eu
umask 077
mkdir -p /shared/workspace /shared/files
[ -s /shared/secret.key ] || {
  od -An -tx1 -N32 /dev/urandom | tr -d ' \n' >/shared/secret.key.part
  mv /shared/secret.key.part /shared/secret.key
}
# The user of the image, to whom a new volume does not belong.
chown -R 10001:10001 /shared
