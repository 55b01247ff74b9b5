// Judges the calls of all tools by their declarations: which run, whom the others ask, and which are refused. `docs/tools.md` shows it.
import { policySection } from '@sluice/config'
import { parse } from 'valibot'
import { askedDecider, declaredDecider, verdict } from '../packages/agent/src/tools/tool-policy.ts'
import { mayDecide } from '../packages/approvals/src/may-decide.ts'
import { isForOperators, ROWS, STANDINGS } from '../packages/sdk/src/index.ts'
import { testHost } from '../packages/testkit/src/host.ts'
import { code, page, table } from './markdown.mjs'

/** The ways to a call, the standings of the principals that come by each, and whether the person of the turn can be asked there. */
export const WAYS = [
  { way: 'chat', standings: ['operator', 'listed', 'stranger', 'unverified'], asks: 'asker' },
  { way: 'room', standings: ['operator', 'listed', 'stranger', 'unverified'], asks: 'asker' },
  { way: 'socket', standings: ['operator', 'client'], asks: 'asker' },
  { way: 'API, MCP', standings: ['operator', 'client'], asks: 'approvers' },
  { way: 'trigger', standings: STANDINGS, asks: 'approvers' },
  { way: 'procedure', standings: ['operator'], asks: 'starter' },
  { way: 'reminder', standings: ['operator', 'client', 'listed', 'stranger'], asks: 'asker or approvers' },
]

/** Inputs of tools whose declarations depend on the input, one for each case. */
const INPUTS = {
  shell: { reads: { command: 'ls' }, 'does more': { command: 'make' } },
  http_request: {
    reads: { url: 'https://a.example', method: 'GET' },
    'sends data': { url: 'https://a.example', method: 'POST', body: 'x' },
  },
  browser: { reads: { action: 'snapshot' }, 'takes a screenshot': { action: 'screenshot' }, acts: { action: 'click' } },
  i2c_read: { reads: {}, 'writes a register first': { register: 1 } },
  datasheet: { reads: { action: 'search' }, downloads: { action: 'download' } },
  gpio_adapter: { reads: { action: 'get' }, sets: { action: 'set' } },
  sop_execute: { 'a procedure that no trigger opens to the principal': { name: 'deploy' } },
  drive: { stops: { action: 'stop' }, moves: { action: 'move' } },
}
/** Values of required keys without which a feature has no tool to show. */
const CONFIG = { 'tool-http': { allowed_domains: ['a.example'] } }

const isDynamic = (tool) => [tool.risk, tool.decider, tool.alwaysAsks].some((member) => typeof member === 'function')

/** Returns every tool of the features in the order of the catalogue, as it is built from the defaults. */
export async function toolsOf(features, confines = true) {
  const host = testHost({ confines: () => confines })
  const found = []
  const ordered = ROWS.flatMap(([id]) => features.find((feature) => feature.id === id) ?? [])
  for (const feature of ordered) {
    const schema = feature.section?.schema
    const read = schema?.['~run']({ value: CONFIG[feature.id] ?? {} }, {})
    const parts = feature.build(host, read?.typed ? read.value : {})
    found.push(...(parts.tools ?? []))
    await parts.close?.()
  }
  return found
}

/** Returns the cases of a tool. Throws for a tool that declares no decider, and for one that judges its input when `INPUTS` has none for it. */
export function casesOf(tool) {
  if (tool.decider === undefined) throw new Error(`The tool ${tool.name} declares no decider`)
  const inputs = Object.entries(INPUTS[tool.name] ?? {})
  if (isDynamic(tool) && inputs.length === 0) throw new Error(`${tool.name} depends on its input: add inputs to scripts/decisions.mjs`)
  return inputs.length === 0
    ? [{ tool, label: tool.name, input: {} }]
    : inputs.map(([label, input]) => ({ tool, label: `${tool.name}: ${label}`, input }))
}

const by = { ...testHost().by, policy: parse(policySection.schema, {}) }

/** Returns what happens to a call with the default policy: `runs`, or who is asked. */
export function outcomeOf({ tool, input }, standing, asks) {
  const risk = typeof tool.risk === 'function' ? tool.risk(input, by) : tool.risk
  const decider = declaredDecider(tool, input, by, standing)
  const needsOperator = isForOperators(decider, standing)
  const alwaysAsks = typeof tool.alwaysAsks === 'function' ? tool.alwaysAsks(input, by) : tool.alwaysAsks === true
  const judged = verdict(by.policy, { name: tool.name, alwaysAsks, asksAfterUntrusted: false, needsOperator }, risk)
  if (judged !== 'ask') return judged === 'run' ? 'runs' : 'refused'
  const asked = askedDecider(decider, standing)
  if (isForOperators(asked, standing)) return 'operators'
  if (!mayDecide({ decider: asked, standing, sources: [] }, { standing, isAsked: true }))
    throw new Error(`${tool.name} asks a person who may not decide`)
  return asks
}

const rowsOf = (one) =>
  STANDINGS.map((standing) => WAYS.map(({ standings, asks }) => (standings.includes(standing) ? outcomeOf(one, standing, asks) : '–')))

export async function decisionsPage(features) {
  const unconfined = (await toolsOf(features, false)).filter(({ name }) => name === 'shell').flatMap(casesOf)
  const all = [
    ...(await toolsOf(features)).flatMap(casesOf),
    ...unconfined.map((one) => ({ ...one, label: `${one.label}, without a sandbox` })),
  ]
  const groups = new Map()
  for (const one of all) {
    const rows = rowsOf(one)
    const key = JSON.stringify(rows)
    groups.set(key, { rows, labels: [...(groups.get(key)?.labels ?? []), one.label] })
  }
  return page(
    'Tool calls',
    'Who decides a call of each tool, with the default policy (`[security.policy] level = "supervised"`). [approvals.md](approvals.md#who-may-decide) explains standings and deciders, and a tool of an MCP server or a plugin is judged by the risk that it is configured with, like the tools with that risk here.',
    table(
      ['cell', 'the call'],
      [
        [code('runs'), 'runs without a question'],
        [code('asker'), 'asks in the conversation or the connection of the turn, and in the conversations of `[approvals] channels`'],
        [code('starter'), 'asks the conversation or device that started the procedure, and the conversations of `[approvals] channels`'],
        [code('approvers'), 'asks in the conversations of `[approvals] channels`; without any it is refused'],
        [
          code('operators'),
          'asks operators only: in the conversations of `[approvals] channels`, on the dashboard and on the command line; where none can be reached it is refused',
        ],
        ['–', 'no principal with this standing comes this way'],
      ],
    ),
    'A chat, a room and a socket ask the person of the turn. The API and MCP have no connection to ask on, except for a streamed turn, which asks as a socket does. A trigger runs its procedure or its turn with the standing of the sender of its event. A procedure runs its own steps as an operator. A reminder runs as its maker stands when it is due.',
    ...[...groups.values()].map(({ rows, labels }) =>
      [
        `## ${labels.length === 1 ? code(labels[0]) : `${code(labels[0])} and ${labels.length - 1} more`}`,
        labels.map(code).join(', '),
        table(
          ['standing', ...WAYS.map(({ way }) => way)],
          rows.map((cells, at) => [code(STANDINGS[at]), ...cells]),
        ),
      ].join('\n\n'),
    ),
  )
}
