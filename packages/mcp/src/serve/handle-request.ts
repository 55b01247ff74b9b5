/** Serves a request of the protocol. Each request is complete: no session exists that a restart of the daemon could lose. */
import { createMcpHandler, Server } from '@modelcontextprotocol/server'
import { signalScope } from '@sluice/kit'
import { AppError, type Logger, type RouteRequest } from '@sluice/sdk'
import { callCallable, KEY_META, listedCallables } from './callable-tools.ts'
import { callOffered, isOwn, listedTool, offeredTo } from './offered-tools.ts'

const INSTRUCTIONS =
  'Sluice runs an agent with tools, memory and procedures. Send it messages with send_message. A tool call that needs an approval waits: see list_approvals.'

/** Nothing is checked by schema here: the tools check their input themselves. */
const NO_VALIDATION = {
  getValidator:
    <T>() =>
    (input: unknown) => ({ valid: true as const, data: input as NonNullable<T>, errorMessage: undefined }),
}

/** `request` is a `POST` with a JSON body. */
export async function handleRequest(request: RouteRequest, log: Logger): Promise<Response> {
  const { url, headers, raw, signal } = request
  const { fetch } = createMcpHandler(() => serverFor(request, log), { onerror: (error) => log.debug('MCP request refused', { error }) })
  return fetch(new Request(url, { method: 'POST', headers, body: Buffer.from(raw), signal }))
}

function serverFor(request: RouteRequest, log: Logger): Server {
  const { role } = request
  const api: RouteRequest['api'] = (call) => request.api(call)
  const server = new Server(
    { name: 'sluice', version: '1' },
    { capabilities: { tools: {} }, instructions: INSTRUCTIONS, jsonSchemaValidator: NO_VALIDATION },
  )
  server.setRequestHandler('tools/list', async (_, context) => {
    const own = offeredTo({ role }).map(listedTool)
    const callable = await listedCallables({ api, signal: context.mcpReq.signal })
    return { tools: [...own, ...callable.filter(({ name }) => !isOwn(name))] }
  })
  server.setRequestHandler('tools/call', async ({ params }, context) => {
    using scope = signalScope([request.signal, context.mcpReq.signal])
    const { name, arguments: input = {}, _meta } = params
    const caller = { api, role, signal: scope.signal }
    const text = (value: string) => [{ type: 'text' as const, text: value }]
    try {
      if (!isOwn(name)) {
        const key = _meta?.[KEY_META]
        return await callCallable(name, input, { ...caller, ...(typeof key === 'string' && { key }) })
      }
      const result = await callOffered(name, input, caller)
      return { content: text(answerIn(result) ?? JSON.stringify(result)), structuredContent: result as Record<string, unknown> }
    } catch (error) {
      if (!(error instanceof AppError)) log.error('MCP tool failed', { tool: params.name, error })
      return { content: text(error instanceof AppError ? error.message : 'internal error'), isError: true }
    }
  })
  return server
}

/** The answer of a turn; undefined for any other result. */
const answerIn = (result: unknown): string | undefined => {
  const { answer } = result as { readonly answer?: unknown }
  return typeof answer === 'string' ? answer : undefined
}
