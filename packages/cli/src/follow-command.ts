/** Follows a command of a feature that runs behind the API: prints its lines, asks its questions and passes an interrupt on. */
import type { CommandFrame, CommandInput } from '@sluice/http/answers'
import { AppError } from '@sluice/sdk'
import { type Api, apiPath } from './api/api.ts'
import type { CliContext } from './context.ts'
import { createPrompter } from './read-input.ts'

/** Resolves to the exit code. Questions are asked only at a terminal and without `--json`. */
export async function followCommand(api: Api, context: CliContext, words: readonly string[]): Promise<number> {
  const { json, out, stdin } = context
  const signal = context.interrupted()
  const prompter = createPrompter(stdin, out.warn, signal)
  let id = ''
  // The command may have ended before the input arrives.
  const tell = (input: CommandInput): Promise<unknown> => api.post(apiPath('/api/commands', id, 'input'), input).catch(() => undefined)
  const abort = (): void => void (id !== '' && tell({ type: 'abort' }))
  signal.addEventListener('abort', abort, { once: true })
  const body = { words, cwd: process.cwd(), json, asks: stdin.isTTY === true && !json }
  try {
    for await (const frame of api.lines<CommandFrame>('/api/commands', { method: 'POST', body })) {
      if (frame.type === 'print') out.print(frame.line)
      else if (frame.type === 'warn') out.warn(frame.line)
      else if (frame.type === 'question') void prompter.ask(frame.text).then((text) => tell({ type: 'answer', text: text ?? null }))
      else if (frame.type === 'exit') return frame.code
      else if (frame.type === 'error') throw new AppError(frame.code, frame.message, { fields: frame.fields })
      else {
        id = frame.id
        if (signal.aborted) abort()
      }
    }
  } finally {
    signal.removeEventListener('abort', abort)
    prompter.close()
  }
  throw new AppError('unavailable', 'The daemon ended the connection before the command')
}
