/** Compiles the firmware in `firmware/` and runs it on a chip that QEMU emulates, with its serial line as a port. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { glob, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { type DebianProgram, debianProgram, type MissingProgram } from '@sluice/qa/debian-program'
import type { Port } from '../devices.ts'

const FIRMWARE = resolve(import.meta.dirname, '../../../../firmware')
const run = promisify(execFile)

interface Kind {
  readonly compiler: { readonly packages: readonly string[]; readonly program: string }
  readonly emulator: { readonly packages: readonly string[]; readonly program: string }
  /** Returns the arguments of the emulator for an image. */
  readonly args: (elf: string) => readonly string[]
}

const KINDS = {
  board_b: {
    compiler: { packages: ['gcc-avr', 'avr-libc'], program: 'usr/bin/avr-gcc' },
    emulator: { packages: ['qemu-system-misc'], program: 'usr/bin/qemu-system-avr' },
    args: (elf) => ['-machine', 'uno', '-bios', elf, '-serial', 'stdio'],
  },
  board_c: {
    compiler: { packages: ['gcc-arm-none-eabi'], program: 'usr/bin/arm-none-eabi-gcc' },
    emulator: { packages: ['qemu-system-arm'], program: 'usr/bin/qemu-system-arm' },
    // These boards connect the second serial line to their debug probe.
    args: (elf) => ['-machine', 'netduinoplus2', '-kernel', elf, '-serial', 'null', '-serial', 'stdio'],
  },
} as const satisfies Record<string, Kind>

export type QemuBoardName = keyof typeof KINDS

export interface QemuBoard {
  readonly port: Port
  stop(): Promise<void>
}

export interface BoardTools {
  readonly compiler: DebianProgram
  readonly emulator: DebianProgram
}

export async function findBoardTools(name: QemuBoardName): Promise<BoardTools | MissingProgram> {
  const [compiler, emulator] = [await debianProgram(KINDS[name].compiler), await debianProgram(KINDS[name].emulator)]
  if ('missing' in compiler) return compiler
  return 'missing' in emulator ? emulator : { compiler, emulator }
}

/** Compiles the firmware as firmware/README.md describes, and starts it. */
export async function startQemuBoard(name: QemuBoardName, { compiler, emulator }: BoardTools): Promise<QemuBoard> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-firmware-'))
  const env = {
    ...process.env,
    PATH: `${dirname(compiler.path)}${delimiter}${process.env.PATH ?? ''}`,
    LD_LIBRARY_PATH: await libraries(compiler),
  }
  await run('make', ['-C', join(FIRMWARE, name), `OUT=${folder}`], { env })
  const child = spawn(
    emulator.path,
    [...KINDS[name].args(join(folder, `${name}.elf`)), '-L', join(emulator.root, 'usr/share/qemu'), '-display', 'none', '-monitor', 'none'],
    { env: { ...process.env, ...emulator.env }, stdio: ['pipe', 'pipe', 'inherit'] },
  )
  await once(child, 'spawn')
  return {
    port: portOf(child),
    async stop() {
      child.kill('SIGKILL')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Returns the library path. The compiler needs other libraries than its driver program. */
async function libraries({ root, env }: DebianProgram): Promise<string> {
  const folders = new Set<string>()
  if (root !== '/') for await (const file of glob('usr/lib/**/*.so*', { cwd: root })) folders.add(join(root, dirname(file)))
  return [...folders, env.LD_LIBRARY_PATH ?? ''].filter((folder) => folder !== '').join(delimiter)
}

function portOf(child: ChildProcess): Port {
  const { stdin, stdout } = child
  if (!stdin || !stdout) throw new TypeError('The emulator has no pipes')
  return {
    write: (bytes) => new Promise((done, fail) => stdin.write(bytes, (error) => (error ? fail(error) : done()))),
    onData(callback) {
      stdout.on('data', callback)
      return () => void stdout.off('data', callback)
    },
    onClose(callback) {
      child.once('exit', callback)
      return () => void child.off('exit', callback)
    },
    signals: async () => undefined,
    close: async () => void child.kill('SIGKILL'),
  }
}
