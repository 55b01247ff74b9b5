// Lays out the files that the container image adds to its base: `node scripts/release/image-files.mjs <build> <folder>`. The Dockerfile and
// `pnpm release` both use it.
import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const LAUNCHER = '#!/bin/sh\nexec node /opt/sluice/sluice.mjs "$@"\n'

/** Writes the files of a build into `folder`, the root of the image. Throws when the build cannot write its configuration. */
export function imageFiles(build, folder) {
  cpSync(build, join(folder, 'opt/sluice'), { recursive: true })
  mkdirSync(join(folder, 'usr/local/bin'), { recursive: true })
  writeFileSync(join(folder, 'usr/local/bin/sluice'), LAUNCHER)
  chmodSync(join(folder, 'usr/local/bin/sluice'), 0o755)
  // A new volume starts with the files of /data: a configuration with which no command runs unconfined.
  const data = join(folder, 'data')
  mkdirSync(data)
  const args = [join(resolve(build), 'sluice.mjs'), 'config', 'init', '--data-dir', data]
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', env: { PATH: process.env.PATH } })
  if (status !== 0) throw new Error(`${build} cannot write the configuration of the image: ${stderr}`)
  chmodSync(data, 0o700)
}

if (import.meta.main) {
  const [build, folder] = process.argv.slice(2)
  if (folder === undefined) {
    console.error('usage: node scripts/release/image-files.mjs <build> <folder>')
    process.exit(2)
  }
  imageFiles(build, folder)
}
