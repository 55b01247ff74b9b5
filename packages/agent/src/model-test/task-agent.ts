/** The agent of a task: it asks the model, runs the calls in the memory of this process, and gives the results back, as a turn does. */
import {
  AppError,
  type ClientId,
  errorText,
  frameUntrusted,
  MAIN_AGENT,
  type ModelMessage,
  type ModelTool,
  type Policy,
  type Tool,
  type ToolContext,
} from '@sluice/sdk'
import type { ToolCall } from '../model/model-reply.ts'
import { describeTools } from '../model/tool-specs.ts'
import { cutResult, READER } from '../tools/cut-result.ts'
import { describedTools, innerCall, searchTool, TOOL_CALL, TOOL_SEARCH } from '../tools/deferred-tools.ts'
import { readOnFile } from '../tools/keep-result.ts'
import { parseToolInput } from '../tools/tool-input.ts'
import { newTrace } from '../turn/ids.ts'
import type { Scrub } from '../turn/scrub.ts'
import { type TaskWorkspace, taskWorkspace } from './task-workspace.ts'
import { type AskOnce, NotSupported, quotedText } from './tests.ts'

/** The parts of the configured agent that the tasks use. */
export interface TaskSurroundings {
  /** The tools of the agent. */
  readonly tools: ReadonlyMap<string, Tool>
  readonly policy: Policy
  /** Returns the system prompt of an agent with these tools. */
  systemPrompt(tools: readonly Tool[]): string
  readonly scrub: Scrub
  readonly signal: AbortSignal
}

export interface TaskOptions {
  readonly tools?: readonly Tool[]
  readonly files?: Readonly<Record<string, string>>
  /** Messages before the first one of the task. */
  readonly before?: readonly ModelMessage[]
  /** True: the model finds the tools of other programs by `tool_search`. */
  readonly defers?: boolean
}

/** A call that the model has made. */
export interface MadeCall {
  readonly tool: string
  /** The number of the reply with the call, from 0. */
  readonly reply: number
  readonly input: unknown
  readonly isOk: boolean
}

const REPLIES_MAX = 12
/** A long file is cut here, so that the tasks stay cheap. */
const RESULT_TOKENS = 2000
const WINDOW_TOKENS = 200_000

export class TaskAgent {
  readonly workspace: TaskWorkspace
  readonly calls: MadeCall[] = []
  readonly #ask: AskOnce
  readonly #around: TaskSurroundings
  readonly #tools: readonly Tool[]
  readonly #defers: boolean
  readonly #messages: ModelMessage[]
  #replies = 0

  constructor(ask: AskOnce, around: TaskSurroundings, { tools = [], files = {}, before = [], defers = false }: TaskOptions) {
    this.workspace = taskWorkspace(files)
    this.#ask = ask
    this.#around = around
    this.#tools = tools
    this.#defers = defers
    this.#messages = [{ role: 'system', content: around.systemPrompt(tools) }, ...before]
  }

  /** Resolves to the answer to a message, after all calls. Rejects when the model gives no answer. */
  async say(content: Extract<ModelMessage, { role: 'user' }>['content'] | string): Promise<string> {
    this.#messages.push({ role: 'user', content: typeof content === 'string' ? [{ type: 'text', text: content }] : content })
    const specs = await describeTools(this.#tools)
    const tools = describedTools(this.#tools, specs, this.#defers ? 0 : WINDOW_TOKENS)
    for (let last = this.#replies + REPLIES_MAX; this.#replies < last; this.#replies++) {
      const reply = await this.#ask({ prompt: [...this.#messages], ...(tools.length > 0 && { tools }) })
      this.#messages.push({ role: 'assistant', content: reply.content })
      if (reply.calls.length === 0) {
        if (reply.text.trim() === '') throw new Error('its answer was empty')
        return reply.text
      }
      const results = []
      for (const call of reply.calls) results.push(resultPart(call, await this.#run(call, specs)))
      this.#messages.push({ role: 'tool', content: results })
    }
    throw new Error(`it had no answer after ${REPLIES_MAX} replies`)
  }

  /** Throws with the answer unless the check has passed; `NotSupported` where the model has called no tool. */
  expect(isRight: boolean, problem: string, answer: string): void {
    const said = `it answered: ${quotedText(answer)}`
    if (this.#tools.length > 0 && this.calls.length === 0) throw new NotSupported(`it called no tool; ${said}`)
    if (!isRight) throw new Error(`${problem}; ${said}`)
  }

  async #run(call: ToolCall, specs: readonly ModelTool[]): Promise<string> {
    const inner = call.name === TOOL_CALL ? innerCall(call.input, this.#around.scrub) : call
    const { name, input } = 'problem' in inner ? call : inner
    const tool = name === TOOL_SEARCH ? searchTool(this.#tools, async () => specs) : this.#tools.find((one) => one.name === name)
    const note = (given: unknown, isOk: boolean) => this.calls.push({ tool: name, reply: this.#replies, input: given, isOk })
    if ('problem' in inner || !tool) {
      note(input, false)
      return 'problem' in inner ? inner.problem : `There is no tool "${name}".`
    }
    const parsed = parseToolInput(tool, input, this.#around.scrub)
    if ('problem' in parsed) {
      note(input, false)
      return parsed.problem
    }
    const context = this.#context()
    try {
      const text = await tool.run(parsed.value, context)
      note(parsed.value, true)
      const { output, nextLine } = cutResult(text, { tokens: RESULT_TOKENS }, tool.name === READER)
      const source = typeof tool.untrusted === 'function' ? tool.untrusted(parsed.value, context) : tool.untrusted ? name : undefined
      const shown = source === undefined ? output : frameUntrusted(source, output)
      return nextLine === undefined || tool.name !== READER ? shown : `${shown}\n${readOnFile(parsed.value, nextLine)}`
    } catch (error) {
      note(parsed.value, false)
      return error instanceof AppError ? error.message : errorText(error)
    }
  }

  #context(): ToolContext {
    const { policy, signal } = this.#around
    return {
      agent: MAIN_AGENT,
      policy,
      workspace: this.workspace,
      client: 'models' as ClientId,
      standing: 'operator',
      session: null,
      turn: 'models',
      signal,
      trace: newTrace(),
    }
  }
}

const resultPart = ({ id, name }: ToolCall, value: string) => ({
  type: 'tool-result' as const,
  toolCallId: id,
  toolName: name,
  output: { type: 'text' as const, value },
})
