/** Makes an image with Node from Debian's packages and this machine's Node, in place of one that would have to be pulled. */
import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { unpackPackages } from '../debian-packages.ts'
import type { DockerEngine } from '../docker-engine.ts'

const run = promisify(execFile)

/** The image that `makeNodeImage` makes. */
export const NODE_IMAGE = 'node-from-debian:1'

/** The packages of a slim image that Node and its package manager need; their dependencies are added. */
const PACKAGES = ['base-files', 'bash', 'coreutils', 'dash', 'findutils', 'grep', 'libstdc++6', 'perl-base', 'sed', 'tar']
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt'
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' }

/** Throws if the packages or npm are not available. */
export async function makeNodeImage({ env }: Pick<DockerEngine, 'env'>): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), 'node-image-'))
  try {
    for (const folder of ['bin', 'lib', 'lib64', 'sbin']) {
      await mkdir(join(root, 'usr', folder), { recursive: true })
      await symlink(`usr/${folder}`, join(root, folder))
    }
    await unpackPackages(root, PACKAGES, { architecture: ARCHITECTURES[process.arch] ?? process.arch })
    const local = join(root, 'usr/local')
    await mkdir(join(local, 'bin'), { recursive: true })
    await cp(process.execPath, join(local, 'bin/node'))
    await copyNpm(local)
    await writeFile(join(root, 'etc/passwd'), 'root:x:0:0:root:/root:/bin/sh\n')
    await mkdir(join(root, 'root'), { recursive: true })
    // A network with an authority of its own needs its certificate for downloads.
    await mkdir(join(root, dirname(CERTIFICATES)), { recursive: true })
    await cp(CERTIFICATES, join(root, CERTIFICATES))
    const settings = ['ENV PATH=/usr/local/bin:/usr/bin:/bin', `ENV NODE_EXTRA_CA_CERTS=${CERTIFICATES}`]
    const changes = settings.map((setting) => `--change '${setting}'`).join(' ')
    await run('sh', ['-c', `tar -C "$1" -c . | docker import ${changes} - "$2"`, 'sh', root, NODE_IMAGE], { env })
  } finally {
    await rm(root, { recursive: true, force: true })
  }
}

/** Copies the npm on this machine's PATH. */
async function copyNpm(local: string): Promise<void> {
  const { stdout } = await run('sh', ['-c', 'command -v npm'])
  const program = await realpath(stdout.trim())
  const folder = dirname(dirname(program))
  await cp(folder, join(local, 'lib/node_modules/npm'), { recursive: true, dereference: true })
  await symlink('../lib/node_modules/npm/bin/npm-cli.js', join(local, 'bin/npm'))
}
