/** Transcribes with a program of the operator, which runs in the sandbox and prints the text. */
import { runInFolder } from '@sluice/kit'
import type { Host } from '@sluice/sdk'
import { FILE } from './config.ts'
import { permanentOrUnavailable, type Recording, type TranscribeOptions, type Transcriber } from './recording.ts'

export class CommandTranscriber implements Transcriber {
  readonly #host: Host
  readonly #command: readonly string[]
  readonly #timeoutMs: number

  /** Replaces `{file}` in each argument by the name of the recording. */
  constructor(host: Host, command: readonly string[], timeoutMs: number) {
    this.#host = host
    this.#command = command
    this.#timeoutMs = timeoutMs
  }

  async transcribe({ bytes, fileName }: Recording, { workspace, signal }: TranscribeOptions): Promise<string> {
    const [program = '', ...args] = this.#command
    const run = {
      command: [program, ...args.map((arg) => arg.replaceAll(FILE, fileName))],
      name: 'transcription',
      files: { [fileName]: bytes },
      timeoutMs: this.#timeoutMs,
      workspace,
      signal,
    }
    return runInFolder(this.#host, run, async ({ stdout }) => stdout).catch((error: unknown) => {
      throw permanentOrUnavailable(error)
    })
  }
}
