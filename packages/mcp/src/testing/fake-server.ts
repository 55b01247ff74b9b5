/** A scripted MCP server behind a fake `Spawn`: each process is a connection in this process, which speaks JSON-RPC by hand. */
import { AppError, type ProcessPipes, type Spawn, type SpawnRequest, type SpawnResult } from '@sluice/sdk'

type Json = Record<string, unknown>
type Message = Json & { readonly id?: number; readonly method?: string; readonly params?: Json }

/** A tool of the fake server; `run` returns the result of a call, or never resolves. */
export interface FakeTool {
  readonly name: string
  readonly description?: string
  readonly inputSchema?: unknown
  readonly annotations?: Json
  readonly run?: (input: Json, process: FakeProcess) => unknown
}

export interface FakeProcess {
  readonly request: SpawnRequest
  /** The messages that the client has sent. */
  readonly received: Message[]
  readonly isRunning: boolean
  /** Writes a raw text to the client. */
  print(text: string): void
  notify(method: string, params?: Json): void
  /** Sends a request to the client and resolves with its answer. */
  ask(method: string, params?: Json): Promise<Message>
  /** From now on, everything that is written to the process waits. */
  stopReading(): void
  /** Ends the process as if it had crashed. */
  exit(code: number, stderr?: string): void
}

/** A server whose members may be changed while it runs. */
export class FakeServer {
  tools: readonly FakeTool[] = []
  capabilities: Json = { tools: { listChanged: true } }
  /** Answers to other methods. */
  methods: Record<string, (params: Json, process: FakeProcess) => unknown> = {}
  /** Fails each start with this error, or ends each process at once with this exit code. */
  broken: AppError | number | undefined
  /** Never answers anything. */
  isSilent = false
  readonly processes: FakeProcess[] = []

  get running(): readonly FakeProcess[] {
    return this.processes.filter(({ isRunning }) => isRunning)
  }

  readonly spawn: Spawn = async (request) => {
    if (this.broken instanceof AppError) throw this.broken
    if (request.signal.aborted) throw new AppError('aborted', 'aborted')
    const process = new Process(request, this)
    this.processes.push(process)
    request.onStart?.(process.pipes)
    if (typeof this.broken === 'number') process.exit(this.broken, 'Error: broken')
    return process.result
  }

  async answer({ method = '', params = {} }: Message, process: FakeProcess): Promise<unknown> {
    const own = this.methods[method]
    if (own) return own(params, process)
    switch (method) {
      case 'initialize':
        return { protocolVersion: '2025-11-25', capabilities: this.capabilities, serverInfo: { name: 'fake', version: '1' } }
      case 'tools/list':
        return { tools: this.tools.map(({ run: _, ...tool }) => ({ inputSchema: { type: 'object' }, ...tool })) }
      case 'tools/call': {
        const tool = this.tools.find(({ name }) => name === params.name)
        if (!tool) throw new Error(`no tool ${params.name}`)
        return (await tool.run?.((params.arguments ?? {}) as Json, process)) ?? { content: [{ type: 'text', text: `ran ${tool.name}` }] }
      }
      default:
        throw new Error('Method not found')
    }
  }
}

class Process implements FakeProcess {
  readonly request: SpawnRequest
  readonly received: Message[] = []
  readonly result: Promise<SpawnResult>
  readonly #server: FakeServer
  readonly #ended = Promise.withResolvers<SpawnResult>()
  readonly #asked = new Map<number, (answer: Message) => void>()
  readonly #output: Uint8Array[] = []
  #wake = () => {}
  #nextId = 1
  #reads = true
  isRunning = true

  constructor(request: SpawnRequest, server: FakeServer) {
    this.request = request
    this.#server = server
    this.result = this.#ended.promise
    request.signal.addEventListener('abort', () => this.exit(0), { once: true })
  }

  readonly pipes: ProcessPipes = {
    output: this.#chunks(),
    write: async (text) => {
      if (!this.#reads) await this.#ended.promise
      for (const line of text.trimEnd().split('\n')) this.#take(JSON.parse(line))
    },
  }

  print(text: string): void {
    this.#output.push(new TextEncoder().encode(text))
    this.#wake()
  }

  notify(method: string, params: Json = {}): void {
    this.#send({ method, params })
  }

  ask(method: string, params: Json = {}): Promise<Message> {
    const { promise, resolve } = Promise.withResolvers<Message>()
    this.#asked.set(this.#nextId, resolve)
    this.#send({ id: this.#nextId++, method, params })
    return promise
  }

  stopReading(): void {
    this.#reads = false
  }

  exit(code: number, stderr = ''): void {
    this.isRunning = false
    this.#ended.resolve({ exitCode: code, signal: null, timedOut: false, stdout: '', stderr, truncated: false, sandbox: 'none' })
    this.#wake()
  }

  #take(message: Message): void {
    this.received.push(message)
    if (this.#server.isSilent || message.id === undefined) return
    if (message.method === undefined) {
      this.#asked.get(message.id)?.(message)
      return
    }
    this.#server.answer(message, this).then(
      (result) => this.#send({ id: message.id, result }),
      (error: Error) => this.#send({ id: message.id, error: { code: -32601, message: error.message } }),
    )
  }

  #send(message: Json): void {
    this.print(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  }

  async *#chunks(): AsyncGenerator<Uint8Array> {
    while (this.isRunning || this.#output.length > 0) {
      const chunk = this.#output.shift()
      if (chunk) yield chunk
      else
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
    }
  }
}
