/** `sluice agent`: one turn without a daemon, on the same store and configuration. */
import { createInterface } from 'node:readline/promises'
import type { Approver, ToolApprovalRequest } from '@sluice/agent'
import { agentNames, unknownAgent } from '@sluice/config'
import { operator } from '@sluice/http/operator'
import { type OpenRuntime, openRuntime } from '@sluice/runtime'
import { AppError, agentKey, MAIN_AGENT } from '@sluice/sdk'
import type { CliContext, Output } from '../context.ts'
import { readInput } from '../read-input.ts'

/** The client whose memories and quotas this command uses. */
const CALLER = 'cli'
/** The longest message from standard input. */
const INPUT_BYTES_MAX = 1_048_576

export async function run(context: CliContext): Promise<number> {
  const { out, json, options, stdin } = context
  const message = typeof options.message === 'string' ? options.message : stdin.isTTY ? '' : await readInput(stdin, INPUT_BYTES_MAX)
  if (message.trim() === '') throw new AppError('invalid_request', "the message is empty: sluice agent -m 'hello'")
  const isInteractive = process.stdin.isTTY === true && process.stderr.isTTY === true && !json
  const runtime = await openRuntime({ ...context, quiet: true, ...(isInteractive ? { approve: askOnTerminal(out) } : {}) })
  try {
    const agent = agentNamed(runtime, options.agent)
    const session = typeof options.session === 'string' ? agentKey(agent, sessionId(options.session)) : null
    const result = await runtime.agent.run({
      source: 'cli',
      agent,
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

function agentNamed(runtime: OpenRuntime, name: unknown): string {
  if (typeof name !== 'string') return MAIN_AGENT
  const names = agentNames(runtime.config())
  if (!names.includes(name)) throw new AppError('invalid_request', `--agent: ${unknownAgent(name, names)}`)
  return name
}

function sessionId(name: string): string {
  if (!/^[A-Za-z0-9._-]{1,128}$/.test(name))
    throw new AppError('invalid_request', `a session name has 1 to 128 of A-Z a-z 0-9 . _ -, not '${name}'`)
  return `local/${name}`
}

/** Asks for approval on standard error, so that standard output holds the reply alone. Any answer but `y` or `yes` rejects. */
const askOnTerminal =
  (out: Output): Approver =>
  async (request: ToolApprovalRequest, signal: AbortSignal) => {
    out.warn(`\n${out.style('yellow', 'The agent wants to run')} ${request.tool}:\n${request.summary}`)
    const terminal = createInterface({ input: process.stdin, output: process.stderr })
    try {
      const answer = await terminal.question('Allow it once? [y/N] ', { signal })
      return /^\s*y(es)?\s*$/i.test(answer) && { by: operator() }
    } catch {
      return false // The signal aborted before an answer.
    } finally {
      terminal.close()
    }
  }
