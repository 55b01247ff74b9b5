/** In the guest: the board's end of a line, for firmware that a test plays. */
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { ReadStream } from 'node:tty'

export interface Terminal {
  write(text: string | Uint8Array): Promise<void>
  close(): Promise<void>
}

/** Calls back with what arrives. The terminal has to be raw. */
export async function openTerminal(path: string, onData: (bytes: Buffer) => void): Promise<Terminal> {
  const file = await open(path, constants.O_RDWR | constants.O_NOCTTY)
  const input = new ReadStream(file.fd)
  // A board that is unplugged hangs its terminal up.
  input.on('error', () => undefined).on('data', onData)
  return {
    async write(text) {
      await file.write(Buffer.from(text))
    },
    async close() {
      input.destroy()
      await file.close().catch(() => undefined)
    },
  }
}
