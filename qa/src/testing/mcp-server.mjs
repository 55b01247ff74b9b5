// An MCP server over standard input and output, without dependencies. It logs each call to the file `calls.log` of its working folder
// before it does anything, and ends with its input.
import { appendFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

const tools = {
  pid: () => String(process.pid),
  add: ({ a, b }) => String(a + b),
  hang: () => new Promise(() => {}),
}

const answers = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'qa', version: '1' } }),
  'tools/list': () => ({ tools: Object.keys(tools).map((name) => ({ name, inputSchema: { type: 'object' } })) }),
  'tools/call': async ({ name, arguments: input }) => {
    appendFileSync('calls.log', `${name}\n`)
    return { content: [{ type: 'text', text: await tools[name](input) }] }
  },
}

createInterface({ input: process.stdin })
  .on('line', async (line) => {
    const { id, method, params } = JSON.parse(line)
    if (id === undefined) return
    const answer = answers[method]
    const outcome = answer ? { result: await answer(params ?? {}) } : { error: { code: -32601, message: 'Method not found' } }
    process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...outcome })}\n`)
  })
  .on('close', () => process.exit())
