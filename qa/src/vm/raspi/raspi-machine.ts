/** Boots an emulated Raspberry Pi 3 with its own device tree, entirely in memory, and runs one case. */
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import type { Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from 'esbuild'
import { type ArchiveEntry, createArchive } from '../cpio.ts'
import { ended, lineReader, listen } from '../guest-lines.ts'
import type { Qemu } from '../guest-packages.ts'
import type { MachineEnd, MachineOutput } from '../machine.ts'
import { CONSOLE_CHARS_MAX, runQemu } from '../run-qemu.ts'
import type { RaspiModel } from '../vm-case.ts'
import type { RaspiParts } from './raspi-parts.ts'

/** How a Raspberry Pi runs. */
export interface RaspiOptions {
  readonly output: MachineOutput
  readonly signal: AbortSignal
  readonly timeoutSecs: number
  readonly model: RaspiModel
}

const BOOT_MS_MAX = 120_000
const RUN_TESTS = join(import.meta.dirname, '../guest/run-tests.ts')
/** The board's second serial port; the kernel uses the first one. */
const LINE = 'ttyS1'
const KERNEL_OPTIONS = `console=ttyAMA0 quiet loglevel=4 panic=-1 rdinit=/first.sh VM_LINE=${LINE}`

/** Bundles the case in `file`, because the guest cannot see files of this machine. Rejects only if QEMU cannot be started. */
export async function runRaspi(parts: RaspiParts, file: string, { output, signal, timeoutSecs, model }: RaspiOptions): Promise<MachineEnd> {
  const startedAtMs = performance.now()
  const tookMs = (): number => Math.round(performance.now() - startedAtMs)
  const folder = await mkdtemp(join(tmpdir(), 'sluice-vm-'))
  const over = new AbortController()
  let server: Server | undefined
  let status: number | undefined
  let bootMs = 0
  const takeLine = (line: string): void => {
    const sent = reportIn(line)
    if (sent === undefined) {
      // Bytes before the machine is ready are noise on the line.
      if (bootMs > 0) output.stdout(Buffer.from(`${line}\n`))
    } else if ('ready' in sent) bootMs = tookMs()
    else if ('exit' in sent) {
      status = Number(sent.exit)
      over.abort()
    } else output.report(line)
  }
  try {
    await writeFile(join(folder, 'initrd'), createArchive(await initialFiles(parts, file)))
    server = await listen(join(folder, 'line'), lineReader(takeLine))
    const timer = AbortSignal.timeout(BOOT_MS_MAX + timeoutSecs * 1000)
    const failure = await boot({ ...parts, deviceTree: parts.deviceTree(model) }, folder, AbortSignal.any([signal, timer, over.signal]))
    await ended(server)
    const console = `${await readFile(join(folder, 'console'), 'utf8').catch(() => '')}${failure}`.slice(-CONSOLE_CHARS_MAX)
    return { status: status ?? (timer.aborted ? 'timeout' : 'died'), console, bootMs, tookMs: tookMs() }
  } finally {
    server?.close()
    await rm(folder, { recursive: true, force: true })
  }
}

interface Bootable {
  readonly qemu: Qemu
  readonly kernel: string
  readonly deviceTree: string
}

function boot({ qemu, kernel, deviceTree }: Bootable, folder: string, signal: AbortSignal): Promise<string> {
  const args = [
    ...['-machine', 'raspi3b', '-display', 'none', '-monitor', 'none', '-no-reboot'],
    ...['-kernel', kernel, '-dtb', deviceTree, '-initrd', join(folder, 'initrd'), '-append', KERNEL_OPTIONS],
    ...['-serial', `file:${join(folder, 'console')}`],
    ...['-chardev', `socket,id=line,path=${join(folder, 'line')}`, '-serial', 'chardev:line'],
  ]
  return runQemu(qemu, args, signal)
}

async function initialFiles({ files }: RaspiParts, file: string): Promise<readonly ArchiveEntry[]> {
  const modules = await readdir(join(files, 'modules'))
  return [
    ...(await entriesBelow(files)),
    { path: 'modules/order', bytes: Buffer.from(`${modules.join('\n')}\n`) },
    { path: 'first.sh', bytes: await readFile(join(import.meta.dirname, 'first.sh')), executable: true },
    { path: 'case.mjs', bytes: await bundled(file) },
  ]
}

async function entriesBelow(folder: string): Promise<readonly ArchiveEntry[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const paths = entries.map((entry) => ({ path: join(entry.parentPath, entry.name), isFolder: entry.isDirectory() }))
  return Promise.all(
    paths
      .toSorted((a, b) => (a.path < b.path ? -1 : 1))
      .map(async ({ path, isFolder }) => ({
        path: path.slice(folder.length + 1),
        ...(!isFolder && { bytes: await readFile(path), executable: true }),
      })),
  )
}

async function bundled(file: string): Promise<Uint8Array> {
  const entry = [`import definition from ${JSON.stringify(file)}`, `import { runTests } from ${JSON.stringify(RUN_TESTS)}`]
  const { outputFiles } = await build({
    stdin: { contents: `${entry.join('\n')}\nawait runTests(definition)`, resolveDir: import.meta.dirname },
    ...{ bundle: true, write: false, platform: 'node', format: 'esm', target: 'node24' },
    external: ['koffi'],
  })
  const [bundle] = outputFiles
  if (!bundle) throw new Error(`esbuild made no bundle of ${file}`)
  return bundle.contents
}

/** Returns the report in a line; `undefined` for other output, which is not a JSON object. */
function reportIn(line: string): object | undefined {
  if (!line.startsWith('{"')) return undefined
  try {
    const sent: unknown = JSON.parse(line)
    return typeof sent === 'object' && sent !== null ? sent : undefined
  } catch {
    return undefined
  }
}
