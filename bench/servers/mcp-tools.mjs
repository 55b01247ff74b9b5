// An MCP server over standard input and output whose tools answer at once. `node mcp-tools.mjs COUNT`, the number of tools.
import { createInterface } from 'node:readline'

const tools = Array.from({ length: Number(process.argv[2]) }, (_, index) => ({
  name: `tool${index}`,
  description: `The tool ${index}, which answers at once with its input.`,
  inputSchema: { type: 'object', properties: { text: { type: 'string', description: 'Any text' } }, required: ['text'] },
}))

const answers = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'bench', version: '1' } }),
  'tools/list': () => ({ tools }),
  'tools/call': ({ arguments: input }) => ({ content: [{ type: 'text', text: input.text }] }),
}

createInterface({ input: process.stdin })
  .on('line', (line) => {
    const { id, method, params } = JSON.parse(line)
    if (id === undefined) return
    const answer = answers[method]
    const outcome = answer ? { result: answer(params ?? {}) } : { error: { code: -32601, message: 'Method not found' } }
    process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...outcome })}\n`)
  })
  .on('close', () => process.exit())
