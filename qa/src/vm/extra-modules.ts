/** Builds modules that Debian's kernel omits: a simulated GPIO chip from Debian's kernel source, and our own simulated SPI bus. */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFile, cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { cacheFolder, releaseName, unpackPackages } from '../debian-packages.ts'
import { onceAndWhole } from '../once-and-whole.ts'
import type { Kernel } from './guest-packages.ts'

/** Arguments for `modprobe` or, for a path, `insmod`. */
export interface Loadable {
  readonly load: readonly string[]
}

interface Extra {
  /** Debian's modules that must be loaded first. */
  readonly needs: readonly string[]
  /** The modules to build, in the order of loading. */
  readonly builds: readonly string[]
  /** The files of Debian's kernel source that the build needs. */
  readonly takes: readonly string[]
}

const EXTRAS: Readonly<Record<string, Extra>> = {
  'gpio-sim': {
    needs: ['configfs'],
    builds: ['irq-sim', 'gpio-sim'],
    takes: ['drivers/gpio/gpio-sim.c', 'drivers/gpio/gpiolib.h', 'kernel/irq/irq_sim.c'],
  },
  'spi-sim': { needs: ['spidev'], builds: ['spi-sim'], takes: [] },
}

const OUTPUT_BYTES_MAX = 16 * 1024 * 1024
const run = promisify(execFile)

/** Returns how to load a module, building it if needed; `missing` is the reason why it cannot be built. */
export type ModuleLoader = (wanted: string) => Promise<Loadable | { readonly missing: string }>

/** Returns a function that tells how to load a module. It builds our own modules once each, at their first use, one after another. */
export function moduleLoader(kernel: Kernel): ModuleLoader {
  const tried = new Map<string, Promise<string | { readonly missing: string }>>()
  let last: Promise<unknown> = Promise.resolve()
  return async (wanted) => {
    const [name = '', ...parameters] = wanted.split(' ')
    const extra = EXTRAS[name]
    if (!extra) return { load: [wanted] }
    const folder = tried.get(name) ?? last.then(() => built(kernel, name, extra)).catch((error: unknown) => whyNot(name, error))
    tried.set(name, folder)
    last = folder
    const found = await folder
    if (typeof found !== 'string') return found
    const files = extra.builds.map((module) => join(found, `${module}.ko`))
    return { load: [...extra.needs, ...files.slice(0, -1), [...files.slice(-1), ...parameters].join(' ')] }
  }
}

function whyNot(name: string, error: unknown): { readonly missing: string } {
  const lines = (error instanceof Error ? error.message : String(error)).trim().split('\n')
  return { missing: `the kernel module ${name} cannot be built: ${lines.find((line) => line.includes('error:')) ?? lines.at(-1)}` }
}

async function built(kernel: Kernel, name: string, extra: Extra): Promise<string> {
  const sources = join(import.meta.dirname, 'modules', name)
  const hash = createHash('sha256').update(JSON.stringify(extra))
  for (const file of (await readdir(sources)).toSorted()) hash.update(await readFile(join(sources, file)))
  const folder = cacheFolder('vm', `module-${name}-${kernel.version}-${hash.digest('hex').slice(0, 16)}`)
  await onceAndWhole(folder, async (draft) => {
    const work = await mkdtemp(join(tmpdir(), 'sluice-vm-module-'))
    try {
      await cp(sources, work, { recursive: true })
      await takeSources(kernel, extra.takes, work)
      await make(kernel, work)
      for (const module of extra.builds) await copyFile(join(work, `${module}.ko`), join(draft, `${module}.ko`))
    } finally {
      await rm(work, { recursive: true, force: true })
    }
  })
  return folder
}

async function make(kernel: Kernel, work: string): Promise<void> {
  const headers = await kernelHeaders(kernel)
  const libraries = join(headers, 'usr/lib/x86_64-linux-gnu')
  const env = { ...process.env, LD_LIBRARY_PATH: [libraries, process.env.LD_LIBRARY_PATH ?? ''].filter(Boolean).join(':') }
  const tree = join(headers, 'usr/src', `linux-headers-${kernel.version}`)
  await run('make', ['-s', '-C', tree, `M=${work}`, 'modules'], { env, maxBuffer: OUTPUT_BYTES_MAX })
}

async function kernelHeaders({ version }: Kernel): Promise<string> {
  const folder = cacheFolder('vm', `headers-${version}-${await releaseName()}`)
  await onceAndWhole(folder, async (draft) => {
    await unpackPackages(draft, [`linux-headers-${version}`], { only: /^(?:linux-headers-|linux-kbuild-|libelf)/ })
    // The package refers to its common part by its installed path.
    const makefile = join(draft, 'usr/src', `linux-headers-${version}`, 'Makefile')
    const text = await readFile(makefile, 'utf8')
    await writeFile(makefile, text.replaceAll('/usr/src/', `${folder}/usr/src/`))
  })
  return folder
}

/** Takes single files out of the kernel source and caches them without the large archive. */
async function takeSources({ version }: Kernel, files: readonly string[], work: string): Promise<void> {
  if (files.length === 0) return
  const series = version.split('.').slice(0, 2).join('.')
  const folder = cacheFolder('vm', `source-${version}-${createHash('sha256').update(files.join()).digest('hex').slice(0, 16)}`)
  await onceAndWhole(folder, async (draft) => {
    await unpackPackages(draft, [`linux-source-${series}`], { only: /^linux-source-/ })
    const archive = join(draft, 'usr/src', `linux-source-${series}.tar.xz`)
    const members = files.map((file) => `linux-source-${series}/${file}`)
    await run('tar', ['-xJf', archive, '-C', draft, '--strip-components=1', ...members])
    await rm(join(draft, 'usr'), { recursive: true })
  })
  for (const file of files) await copyFile(join(folder, file), join(work, file.split('/').at(-1) ?? ''))
}
