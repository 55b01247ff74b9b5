// A scripted model: answers the chat completions of the tasks of an agent, and records every request.
import { createServer } from 'node:http'

const call = (name, args) => ({ name, args })
const STEPS = 30

/** The steps of each task: the calls of a reply, or its text. `writeFiles` in measures/agent.mjs makes the files. */
const TASKS = {
  short: [{ text: 'Fine.' }],
  edit: [
    { calls: [call('list', {})] },
    { calls: [call('read', { path: 'notes.md' })] },
    { calls: [call('write', { path: 'copy.md', content: '# Release plan\n' })] },
    { calls: [call('shell', { command: 'grep -n ship notes.md' })] },
    { calls: [call('read', { path: 'copy.md' })] },
    { text: 'Done.' },
  ],
  huge: [
    { calls: [call('shell', { command: 'cat numbers.txt' })] },
    { calls: [call('read', { path: 'big.log' })] },
    { calls: [call('read', { path: 'oneline.json' })] },
    { calls: [call('shell', { command: 'grep -n ERROR big.log' })] },
    { text: 'Read.' },
  ],
  steps: [
    ...Array.from({ length: STEPS }, (_, at) => ({ calls: [call('shell', { command: `echo step ${at}` })] })),
    { text: 'thirty steps done' },
  ],
}

/** The names of the tools of each program, by the names in the tasks. */
const TOOLS = {
  sluice: { list: 'file_list', read: 'file_read', write: 'file_write', shell: 'shell' },
  pi: { list: ['bash', { command: 'ls' }], read: 'read', write: 'write', shell: 'bash' },
  openclaw: { list: ['exec', { command: 'ls' }], read: 'read', write: 'write', shell: 'exec' },
}

const textOf = (content) => (typeof content === 'string' ? content : (content ?? []).map(({ text = '' }) => text).join(''))

/** The message of a person names its task as `[task: edit]`. */
function stepOf(messages) {
  const at = messages.findLastIndex(({ role, content }) => role === 'user' && textOf(content).includes('[task: '))
  const task = /\[task: (\w+)\]/.exec(textOf(messages[at]?.content))?.[1]
  const step = messages.slice(at + 1).filter(({ role }) => role === 'assistant').length
  return TASKS[task]?.[step] ?? { text: 'ok' }
}

function callOf({ name, args }, program, id) {
  const own = TOOLS[program][name]
  const [tool, input] = typeof own === 'string' ? [own, args] : own
  return { id, type: 'function', function: { name: tool, arguments: JSON.stringify(input) } }
}

/** Starts the model. `requests` are the bodies that have arrived since `clear`. */
export function startScriptedModel() {
  let requests = []
  let program = 'sluice'
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const piece of request.setEncoding('utf8')) body += piece
    const json = (value) => response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value))
    if (request.method === 'GET') return json({ object: 'list', data: [{ id: 'scripted', object: 'model', context_length: 200_000 }] })
    const asked = JSON.parse(body)
    requests.push(asked)
    const { text, calls = [] } = stepOf(asked.messages)
    const tools = calls.map((one, at) => callOf(one, program, `call_${requests.length}_${at}`))
    const usage = { prompt_tokens: Math.round(body.length / 4), completion_tokens: 10, total_tokens: Math.round(body.length / 4) + 10 }
    const base = { id: `c${requests.length}`, created: 1, model: asked.model }
    const message = { role: 'assistant', content: text ?? null, ...(tools.length > 0 && { tool_calls: tools }) }
    const finish = tools.length > 0 ? 'tool_calls' : 'stop'
    if (!asked.stream) return json({ ...base, object: 'chat.completion', choices: [{ index: 0, message, finish_reason: finish }], usage })
    const event = (choices, more = {}) =>
      response.write(`data: ${JSON.stringify({ ...base, object: 'chat.completion.chunk', choices, ...more })}\n\n`)
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const delta = { ...message, ...(tools.length > 0 && { tool_calls: tools.map((tool, index) => ({ index, ...tool })) }) }
    event([{ index: 0, delta, finish_reason: null }])
    event([{ index: 0, delta: {}, finish_reason: finish }])
    event([], { usage })
    response.end('data: [DONE]\n\n')
  })
  return new Promise((resolve) =>
    server.listen(0, '127.0.0.1', () =>
      resolve({
        url: `http://127.0.0.1:${server.address().port}/v1`,
        /** Forgets the requests, and calls the tools of this program from now on. */
        clear(of) {
          program = of
          requests = []
        },
        requests: () => requests,
        close: () => server.close(),
      }),
    ),
  )
}
