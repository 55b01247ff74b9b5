/** A server for OpenOCD's `remote_bitbang` protocol that connects an unmodified OpenOCD to the simulated debug port. */
import { createServer, type Socket } from 'node:net'
import { DebugPort } from './debug-port.ts'
import { Taps } from './jtag-taps.ts'
import { listen } from './listen.ts'
import { type ChipModel, openStm32Memory } from './stm32-memory.ts'

export interface JtagChip {
  readonly port: number
  close(): Promise<void>
}

/** `gdb` is the address of the emulated core's GDB server. */
export async function startJtagChip(gdb: string, model: ChipModel): Promise<JtagChip> {
  const memory = await openStm32Memory(gdb, model)
  const taps = new Taps(model.boundaryIdentity, new DebugPort(memory))
  const sockets = new Set<Socket>()
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined).once('close', () => sockets.delete(socket))
    serve(socket, taps)
  })
  const { port, close } = await listen(server)
  return {
    port,
    async close() {
      for (const socket of sockets) socket.destroy()
      await close()
      memory.close()
    },
  }
}

function serve(socket: Socket, taps: Taps): void {
  let wasHigh = false
  const run = async (command: string): Promise<void> => {
    const levels = command.charCodeAt(0) - 0x30
    if (levels >= 0 && levels < 8) {
      const isHigh = levels >= 4
      if (isHigh && !wasHigh) await taps.clock(levels & 2 ? 1 : 0, levels & 1 ? 1 : 0)
      wasHigh = isHigh
    } else if (command === 'R') socket.write(String(taps.out()))
    else if (command === 'Q') socket.end()
    else if (command === 't' || command === 'u') taps.reset()
  }
  let last = Promise.resolve()
  socket.on('data', (bytes) => {
    last = last
      .then(async () => {
        for (const command of bytes.toString('latin1')) await run(command)
      })
      .catch((error: Error) => void socket.destroy(error))
  })
}
