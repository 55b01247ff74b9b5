import { defineTool, type Tool } from '@sluice/sdk'
import * as v from 'valibot'
import { expect, test } from 'vitest'
import { type Reply, scriptedModel } from '../testing/scripted-model.ts'
import { request, resultsIn, testAgent, testTool } from '../testing/test-agent.ts'
import type { ToolApprovalRequest, TurnPart } from '../turn/turn.ts'

/** Tools of another program, with long descriptions. */
const external = (count: number, ran: string[] = []): Tool[] =>
  Array.from({ length: count }, (_, at) => ({
    ...defineTool({
      name: `mcp_files_${at}`,
      description: `Copies files to place ${at}. ${'word '.repeat(60)}`,
      input: v.looseObject({ to: v.string() }),
      risk: 'execute',
      egress: true,
      untrusted: true,
      run: async ({ to }) => `copied ${ran.push(to)}`,
    }),
    inputSchema: { type: 'object', properties: { to: { type: 'string' } }, required: ['to'] },
  }))
const look = testTool('look', () => 'seen')
const call = (name: string, input: unknown): Reply => ({ calls: [{ name, input }] })
const namesOf = (tools: readonly { readonly name: string }[] | undefined) => tools?.map(({ name }) => name)

test('few external tools are described to the model', async () => {
  const model = scriptedModel([{ text: 'hi' }])
  await testAgent({ models: [model], tools: [look, ...external(3)] }).agent.run(request('go'))
  expect(namesOf(model.asked[0]?.tools)).toEqual(['look', 'mcp_files_0', 'mcp_files_1', 'mcp_files_2'])
})

test('many external tools are found and called, under their own name and policy', async () => {
  const ran: string[] = []
  const asked: ToolApprovalRequest[] = []
  const heard: TurnPart[] = []
  const model = scriptedModel([
    call('tool_search', { query: 'copy files to place 7' }),
    call('tool_call', { name: 'mcp_files_7', input: { to: 'desk' } }),
    call('tool_call', { name: 'mcp_files_7', input: { from: 'desk' } }),
    call('tool_call', { name: 'mcp_file_7', input: {} }),
    call('tool_call', { input: {} }),
    call('tool_call', { tool: 'mcp_files_7', arguments: '{"to":"shelf"}' }),
    { text: 'done' },
  ])
  const approve = async (asking: ToolApprovalRequest) => {
    asked.push(asking)
    return { by: 'alice', standing: 'operator' as const }
  }
  const { agent } = testAgent({ models: [model], tools: [look, ...external(60, ran)], approve })
  await agent.run(request('go', { listen: (part) => heard.push(part) }))
  for (const { tools } of model.asked) expect(namesOf(tools)).toEqual(['look', 'tool_search', 'tool_call'])
  expect(model.asked[0]?.tools).toEqual(model.asked.at(-1)?.tools)
  const results = model.asked.slice(1).map(({ prompt }) => resultsIn(prompt)[0] ?? '')
  expect(results[0]).toContain('{"name":"mcp_files_7","description":"Copies files to place 7.')
  expect(results[1]).toMatch(/<untrusted source="mcp_files_7"[\s\S]*copied 1/)
  expect(results[2]).toContain('"from" is unknown; did you mean "to"?')
  expect(results[3]).toContain('There is no tool "mcp_file_7". Similar names: mcp_files_7')
  expect(results[4]).toMatch(/^The input of tool_call is not valid:\n- name: /)
  expect(ran).toEqual(['desk', 'shelf'])
  expect(asked.map(({ tool, summary }) => [tool, /desk|shelf/.exec(summary)?.[0]])).toEqual([
    ['mcp_files_7', 'desk'],
    ['mcp_files_7', 'shelf'],
  ])
  expect(heard.flatMap((part) => (part.type === 'tool_call' ? [part.name] : []))).toEqual([
    'tool_search',
    'mcp_files_7',
    'mcp_files_7',
    'tool_call',
    'tool_call',
    'mcp_files_7',
  ])
})

test('the tools that a turn may not call are neither found nor called', async () => {
  const ran: string[] = []
  const model = scriptedModel([
    call('tool_search', { query: 'copies files' }),
    call('tool_call', { name: 'mcp_files_1', input: { to: 'desk' } }),
    { text: 'done' },
  ])
  const tools = [look, ...external(60, ran)]
  const allowed = tools.map(({ name }) => name).filter((name) => name !== 'mcp_files_1')
  await testAgent({ models: [model], tools, policy: { level: 'full' } }).agent.run(request('go', { tools: allowed }))
  expect(resultsIn(model.asked[1]?.prompt ?? [])[0]).not.toContain('"mcp_files_1"')
  expect(resultsIn(model.asked[2]?.prompt ?? [])[0]).toContain('mcp_files_1 may not be called here')
  expect(ran).toEqual([])
})

test('a tool that reports the outcome of a procedure is offered only to its turns', async () => {
  const report: Tool = { ...testTool('report', () => 'ok'), reportsOnly: true }
  const offered = async (source: string) => {
    const model = scriptedModel([{ text: 'hi' }])
    await testAgent({ models: [model], tools: [look, report] }).agent.run(request('go', { source }))
    return namesOf(model.asked[0]?.tools)
  }
  expect([await offered('webhook'), await offered('sop')]).toEqual([['look'], ['look', 'report']])
})
