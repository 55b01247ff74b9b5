/** A fake OpenOCD for tests, as a spawned process and as a server of its TCL port. */
import { createServer, type Socket } from 'node:net'
import type { Spawn, SpawnResult } from '@sluice/sdk'
import { type ChipMemory, tclWords } from './chip-memory.ts'
import { listen } from './listen.ts'

const BANNER = 'Open On-Chip Debugger 0.12.0\nLicensed under GNU GPL v2\n'
const READ = /^format "sluice %d %d %s" (\d+) \[catch \{read_memory (0x[0-9a-f]+) (\d+) (\d+)\} sluice\] \$sluice$/

export const ended = (changes: Partial<SpawnResult> = {}): SpawnResult => ({
  exitCode: 0,
  signal: null,
  timedOut: false,
  stdout: '',
  stderr: BANNER,
  truncated: false,
  sandbox: 'jail',
  ...changes,
})

/** Returns the value of one expression. */
function evaluate(expression: string, memory: ChipMemory): string {
  const [, index, address, bits, count] = READ.exec(expression) ?? []
  if (index === undefined) return `invalid command name "${expression}"`
  const width = Number(bits) === 16 ? 2 : 4
  const words = tclWords(memory, { address: Number(address), length: Number(count) * width, width })
  return words === undefined ? `sluice ${index} 1 failed to read memory` : `sluice ${index} 0 ${words}`
}

/** Prints the values of the expressions that its arguments echo. */
export const openocdProcess =
  (memory: ChipMemory): Spawn =>
  async ({ args }) => {
    const echoed = args.flatMap((arg) => /^echo \[(.*)\]$/.exec(arg)?.[1] ?? [])
    return ended({ stderr: BANNER + echoed.map((expression) => `${evaluate(expression, memory)}\n`).join('') })
  }

export interface FakeTclServer {
  readonly address: string
  close(): Promise<void>
}

/** `answer` changes each answer; undefined sends nothing. */
export async function startFakeTclServer(
  memory: ChipMemory,
  answer: (text: string, socket: Socket) => string | undefined = (text) => text,
): Promise<FakeTclServer> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    let rest = ''
    socket.on('data', (bytes) => {
      const commands = (rest + bytes.toString()).split('\x1a')
      rest = commands.pop() ?? ''
      for (const command of commands) {
        const text = answer(evaluate(command, memory), socket)
        if (text !== undefined && !socket.destroyed) socket.write(`${text}\x1a`)
      }
    })
  })
  const { address, close } = await listen(server)
  return {
    address,
    async close() {
      for (const socket of sockets) socket.destroy()
      await close()
    },
  }
}
