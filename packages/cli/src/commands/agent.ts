/** `sluice agent`: one turn, in the daemon or, if none runs, in this process. */
import { AppError } from '@sluice/sdk'
import { type AgentTurn, runHere, runInDaemon } from '../agent-turn.ts'
import { whileStarting } from '../api/open-api.ts'
import type { CliContext } from '../context.ts'
import { sessionOption, textOption } from '../option-values.ts'
import { readInput } from '../read-input.ts'

/** The longest message from standard input. */
const INPUT_BYTES_MAX = 1_048_576

export async function run(context: CliContext): Promise<number> {
  const { out, json, options, stdin } = context
  const message = typeof options.message === 'string' ? options.message : stdin.isTTY ? '' : await readInput(stdin, INPUT_BYTES_MAX)
  if (message.trim() === '') throw new AppError('invalid_request', "the message is empty: sluice agent -m 'hello'")
  const session = sessionOption(context)
  const turn: AgentTurn = {
    message,
    session,
    agent: textOption(context, 'agent'),
    canAsk: process.stdin.isTTY === true && process.stderr.isTTY === true && !json,
    signal: context.interrupted(),
    onText: (text) => json || out.write(text),
  }
  const reply = await whileStarting(context.dataDir, async () => (await runInDaemon(context, turn)) ?? (await runHere(context, turn)))
  const { response, model, turn_id, finish_reason, usage } = reply
  if (json) out.json({ response, model, session_id: session ?? null, turn_id, finish_reason, usage })
  else out.print('')
  return 0
}
