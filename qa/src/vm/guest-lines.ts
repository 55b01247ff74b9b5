/** The host's end of the ports over which a guest sends its output. */
import { createServer, type Server } from 'node:net'

const LINE_CHARS_MAX = 64 * 1024

/** Accepts one connection, from QEMU, and passes its bytes to `onBytes`. */
export function listen(path: string, onBytes: (bytes: Uint8Array) => void): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => {
      socket.on('data', onBytes).on('error', () => socket.destroy())
    })
    server.maxConnections = 1
    server.on('error', reject).listen(path, () => resolve(server))
  })
}

/** Resolves after the connection has ended and all its bytes were passed on. */
export const ended = (server: Server): Promise<void> => new Promise((resolve) => void server.close(() => resolve()))

/** Splits bytes into lines and passes each complete one to `onLine`. */
export function lineReader(onLine: (line: string) => void): (bytes: Uint8Array) => void {
  const decoder = new TextDecoder()
  let rest = ''
  return (bytes) => {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n')
    rest = (lines.pop() ?? '').slice(-LINE_CHARS_MAX)
    for (const line of lines) onLine(line)
  }
}
