/** In the guest: one end of a serial line as bytes, for tests that simulate firmware. */
import { execFile } from 'node:child_process'
import { constants, openSync, write } from 'node:fs'
import { ReadStream } from 'node:tty'
import { promisify } from 'node:util'

/** An open terminal. */
export interface Terminal {
  /** Rejects while the line is being removed. */
  write(text: string | Uint8Array): Promise<void>
  /** May be called twice. */
  close(): Promise<void>
}

const run = promisify(execFile)
const writeAll = promisify(write)

/** Calls `onData` with arriving bytes, also after the board was unplugged and plugged in again. */
export async function openTerminal(path: string, onData: (bytes: Buffer) => void): Promise<Terminal> {
  let closed = false
  let end = await openEnd()

  async function openEnd(): Promise<{ readonly fd: number; readonly input: ReadStream }> {
    const fd = openSync(path, constants.O_RDWR | constants.O_NOCTTY)
    await run('stty', ['-F', path, 'raw', '-echo'])
    // The stream owns the descriptor. Unplugging hangs up the terminal, and the open descriptor becomes useless.
    const input = new ReadStream(fd)
    input.on('error', () => undefined).on('data', onData)
    input.once('close', () => {
      if (!closed) void reopen()
    })
    return { fd, input }
  }
  async function reopen(): Promise<void> {
    end = await openEnd()
  }

  return {
    async write(text) {
      await writeAll(end.fd, Buffer.from(text))
    },
    async close() {
      closed = true
      end.input.destroy()
    },
  }
}
