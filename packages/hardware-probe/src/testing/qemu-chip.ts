/** A Cortex-M4 emulated by QEMU that runs `pattern.s`, with a GDB server and a monitor that reads memory without halting it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { type DebianProgram, debianProgram, type MissingProgram } from '@sluice/qa/debian-program'
import { listen } from './listen.ts'
import { COUNTER, PATTERN_ENTRY, PATTERN_PROGRAM } from './pattern.ts'

export interface QemuChip {
  /** `host:port` of its GDB server. */
  readonly gdb: string
  /** Returns whether the chip is not halted and its counter changes. */
  isRunning(): Promise<boolean>
  stop(): Promise<void>
}

/** The number of checks, 5 ms apart, whether the counter changes. */
const CHECKS_MAX = 200

export const findQemu = (): Promise<DebianProgram | MissingProgram> =>
  debianProgram({ packages: ['qemu-system-arm'], program: 'usr/bin/qemu-system-arm' })

/** Starts the chip. Resolves once its program counts. */
export async function startQemuChip({ path, env, root }: DebianProgram): Promise<QemuChip> {
  const folder = await mkdtemp(join(tmpdir(), 'qemu-chip-'))
  await writeFile(join(folder, 'pattern.bin'), PATTERN_PROGRAM)
  const port = await freePort()
  const child = spawn(
    path,
    [
      ...['-M', 'netduinoplus2', '-L', join(root, 'usr/share/qemu'), '-nodefaults', '-display', 'none', '-qmp', 'stdio'],
      ...['-device', `loader,file=${join(folder, 'pattern.bin')},addr=0x08000000`],
      ...['-device', `loader,addr=${PATTERN_ENTRY + 1},cpu-num=0`, '-gdb', `tcp:127.0.0.1:${port}`],
    ],
    { env: { ...process.env, ...env }, stdio: ['pipe', 'pipe', 'inherit'] },
  )
  const killAtExit = (): void => void child.kill('SIGKILL')
  process.once('exit', killAtExit)
  const monitor = monitorOf(child)
  const word = async (address: number): Promise<number> =>
    Number(/0x[0-9a-f]{8}$/.exec(String(await monitor('human-monitor-command', { 'command-line': `xp /1xw ${address}` })).trim())?.[0])
  await monitor('qmp_capabilities')
  const counts = async (): Promise<boolean> => {
    const first = await word(COUNTER)
    for (let checks = 0; checks < CHECKS_MAX; checks++) {
      await setTimeout(5)
      if ((await word(COUNTER)) !== first) return true
    }
    return false
  }
  if (!(await counts())) throw new Error('the program on the emulated chip does not run')
  return {
    gdb: `127.0.0.1:${port}`,
    isRunning: async () => ((await monitor('query-status')) as { running: boolean }).running && counts(),
    async stop() {
      const ended = once(child, 'exit')
      process.off('exit', killAtExit)
      child.kill('SIGKILL')
      await ended
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Returns a function that runs one monitor command at a time. Answers are lines of JSON; the greeting and events are skipped. */
function monitorOf({ stdin, stdout }: ChildProcess): (execute: string, args?: object) => Promise<unknown> {
  if (!stdin || !stdout) throw new Error('QEMU has no monitor')
  const lines = createInterface(stdout)[Symbol.asyncIterator]()
  return async (execute, args = {}) => {
    stdin.write(`${JSON.stringify({ execute, arguments: args })}\n`)
    for (;;) {
      const { value, done } = await lines.next()
      if (done) throw new Error('QEMU has ended')
      const answer = JSON.parse(value)
      if ('error' in answer) throw new Error(answer.error.desc)
      if ('return' in answer) return answer.return
    }
  }
}

async function freePort(): Promise<number> {
  const { port, close } = await listen(createServer())
  await close()
  return port
}
