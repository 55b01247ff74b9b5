/** `sluice agent`: one turn without a daemon, on the same store and configuration. */
import { createInterface } from 'node:readline/promises'
import type { ApprovalRequest, Approver } from '@sluice/agent'
import { AppError } from '@sluice/sdk'
import { cliUser } from '../cli-user.ts'
import type { CliContext, Output } from '../context.ts'
import { openFromContext } from '../open.ts'
import { readInput } from '../read-input.ts'

/** Who speaks at this terminal, for tools that keep something for each caller. */
const CALLER = 'cli'

/** The longest message read from standard input. */
const INPUT_BYTES_MAX = 1_048_576

export async function run(context: CliContext): Promise<number> {
  const { out, json, options, stdin } = context
  const message = typeof options.message === 'string' ? options.message : stdin.isTTY ? '' : await readInput(stdin, INPUT_BYTES_MAX)
  if (message.trim() === '') throw new AppError('invalid_request', "say something: sluice agent -m 'hello'")
  const interactive = process.stdin.isTTY === true && process.stderr.isTTY === true && !json
  const runtime = await openFromContext(context, interactive ? askOnTerminal(out) : undefined)
  try {
    const session = typeof options.session === 'string' ? sessionId(options.session) : null
    const result = await runtime.agent.run({
      source: 'cli',
      session,
      text: message,
      client: runtime.clients.ofCaller(CALLER),
      caller: CALLER,
      signal: context.interrupted(),
      ...(json ? {} : { listen: (part) => part.type === 'text' && out.write(part.delta) }),
    })
    const { text: response, model, id: turn_id, usage } = result
    const { inputTokens: input_tokens, outputTokens: output_tokens, costUsd: cost_usd } = usage
    if (json) out.json({ response, model, session_id: options.session ?? null, turn_id, usage: { input_tokens, output_tokens, cost_usd } })
    else out.print('')
    return 0
  } finally {
    await runtime.close()
  }
}

function sessionId(name: string): string {
  if (!/^[A-Za-z0-9._-]{1,128}$/.test(name))
    throw new AppError('invalid_request', `a session name has 1 to 128 of A-Z a-z 0-9 . _ -, not '${name}'`)
  return `local/${name}`
}

/** Asks on the terminal, on standard error so that the reply stays clean. Anything but `y` or `yes` is a no. */
const askOnTerminal =
  (out: Output): Approver =>
  async (request: ApprovalRequest, signal: AbortSignal) => {
    out.warn(`\n${out.style('yellow', 'The agent wants to run')} ${request.tool}:\n${request.summary}`)
    const terminal = createInterface({ input: process.stdin, output: process.stderr })
    try {
      const answer = await terminal.question('Allow it once? [y/N] ', { signal })
      return /^\s*y(es)?\s*$/i.test(answer) && { by: cliUser() }
    } catch {
      return false // interrupted: nobody agreed
    } finally {
      terminal.close()
    }
  }
