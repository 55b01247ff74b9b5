import { NO_SHARES } from '@sluice/config'
import { AppError, defineTool, isAtLeast, Secret, STANDINGS, type Standing, type Tool } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import { until } from '@sluice/testkit/until'

import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { memoryBooks } from '../testing/memory-books.ts'
import { type Reply, scriptedModel } from '../testing/scripted-model.ts'
import { request, resultsIn, type TestAgentOptions, testAgent, testTool } from '../testing/test-agent.ts'
import type { CallScope } from '../turn/call-scope.ts'
import { Shares } from '../turn/shares.ts'
import type { ToolApprovalRequest, TurnPart, TurnRequest } from '../turn/turn.ts'
import { fileShareOf } from './keep-result.ts'
import { callHash } from './shown-call.ts'

type Calls = NonNullable<Reply['calls']>

/** Runs a turn whose model makes these calls, one reply each, and then answers. Resolves to the results by reply. */
async function callTools(replies: readonly Calls[], options: TestAgentOptions = {}, more: Partial<TurnRequest> = {}) {
  const model = scriptedModel([...replies.map((calls) => ({ calls })), { text: 'done' }])
  const setup = testAgent({ models: [model], ...options })
  const result = await setup.agent.run(request('go', more))
  const results = model.asked.slice(1).map(({ prompt }) => resultsIn(prompt))
  return { ...setup, model, result, results, text: results.flat()[0] ?? '' }
}

const call = (name: string, input: unknown = {}) => ({ name, input })

describe('a tool call of a model', () => {
  test('runs with validated input and returns its result to the model', async () => {
    const look = testTool('look', (key) => `seen ${key}`)
    const { results, model, result } = await callTools([[call('look', { key: 'a' }), call('look')]], { tools: [look] })
    expect(results).toEqual([['seen a', 'seen none']])
    expect(model.asked[1]?.prompt.slice(1).map(({ role }) => role)).toEqual(['user', 'assistant', 'tool'])
    expect(result.text).toBe('done')
  })

  test('is described to the model as JSON Schema without $schema, except to the offline provider', async () => {
    const look = testTool('look', () => 'seen')
    const { model } = await callTools([], { tools: [look] })
    expect(model.asked[0]).toMatchObject({
      toolChoice: { type: 'auto' },
      tools: [
        {
          type: 'function',
          name: 'look',
          description: 'The look tool.',
          inputSchema: { type: 'object', properties: { key: { type: 'string', default: 'none' } } },
        },
      ],
    })
    expect(JSON.stringify(model.asked[0]?.tools)).not.toContain('$schema')
    const offline = await callTools([], { tools: [look], labels: [{ provider: 'offline', model: 'offline' }] })
    expect(offline.model.asked[0]).not.toHaveProperty('tools')
  })

  test('with invalid input gets the expectation', async () => {
    const look = defineTool({
      name: 'look',
      description: '',
      input: v.object({ lines: v.number() }),
      risk: 'read',
      egress: false,
      untrusted: false,
      run: async () => 'ran',
    })
    const { results } = await callTools([[call('look', { lines: 'x' }), call('look', '{"lines":'), call('look', [1])]], { tools: [look] })
    expect(results[0]?.[0]).toMatch(/lines: .*Expected number but received "x"/)
    expect(results[0]?.[1]).toContain('is not JSON')
    expect(results[0]?.[2]).toMatch(/lines: .*Expected "lines"|Expected Object/)
  })

  test('is in the history with the input that ran, however the model has written it', async () => {
    const ran: string[] = []
    const look = testTool('look', (key) => `${ran.push(key)}`)
    const written = [JSON.stringify('{"key":"a"}'), '{"key":"b"} Let me look.', '```json\n{"key":"c"}\n```', '{"key":"d\n"}', '{"key":']
    const { model } = await callTools([written.map((input) => call('look', input))], { tools: [look] })
    const inputs = model.asked[1]?.prompt.flatMap(({ role, content }) =>
      role === 'assistant' ? content.flatMap((part) => (part.type === 'tool-call' ? [part.input] : [])) : [],
    )
    expect(ran).toEqual(['a', 'b', 'c', 'd\n'])
    expect(inputs).toEqual([...ran.map((key) => ({ key })), {}])
  })

  test('of an unknown tool gets the nearest names', async () => {
    const tools = ['file_read', 'file_write', 'shell'].map((name) => testTool(name, () => 'ran'))
    const { results, events } = await callTools([[call('read_file'), call('file_red'), call('zzz'), call('we/ird näme')]], { tools })
    expect(results[0]?.[1]).toBe('There is no tool "file_red". Similar names: file_read.')
    expect(results[0]?.[2]).toBe('There is no tool "zzz". Available tools: file_read, file_write, shell.')
    expect(results[0]?.[3]).toContain('"we_ird_n_me"')
    expect(events.flatMap((event) => (event.type === 'tool_completed' ? event.tool : []))).toEqual(Array(4).fill('unknown'))
  })

  test('of a left-out tool is answered by its stub', async () => {
    const stub = testTool('gpio_read', () => {
      throw new AppError('not_compiled', 'Not in this build: npm run build:full')
    })
    const { text, model } = await callTools([[call('gpio_read')]], { stubs: [stub] })
    expect(text).toBe('Not in this build: npm run build:full')
    expect(model.asked[0]).not.toHaveProperty('tools')
  })

  test('returns a refusal; a fault returns a fixed text and logs its cause', async () => {
    const tools = [
      testTool('refuses', () => {
        throw new AppError('forbidden', 'Not that file')
      }),
      testTool('breaks', () => {
        throw new TypeError('inner detail')
      }),
    ]
    const { results, events, logs } = await callTools([[call('refuses'), call('breaks')]], { tools })
    expect(results[0]).toEqual(['Not that file', 'The tool failed because of an internal error. The log of the daemon has the cause.'])
    expect(events.flatMap((event) => (event.type === 'tool_completed' ? event.outcome : []))).toEqual(['error', 'error'])
    expect(logs).toMatchObject([{ level: 'error', message: 'tool failed', fields: { tool: 'breaks' } }])
  })

  test('runs in parallel with other reads, and in order with calls that have effects', async () => {
    const running: string[] = []
    let peak = 0
    const slow = (name: string, risk: 'read' | 'write') =>
      testTool(
        name,
        async (key) => {
          running.push(key)
          peak = Math.max(peak, running.length)
          await new Promise((resolve) => setImmediate(resolve))
          running.splice(running.indexOf(key), 1)
          return key
        },
        risk,
      )
    const tools = [slow('look', 'read'), slow('change', 'write')]
    await callTools([[call('look', { key: 'a' }), call('look', { key: 'b' })]], { tools })
    expect(peak).toBe(2)
    peak = 0
    const { results } = await callTools([[call('look', { key: 'a' }), call('change', { key: 'b' }), call('look', { key: 'c' })]], { tools })
    expect(peak).toBe(1)
    expect(results).toEqual([['a', 'b', 'c']])
  })

  test('is limited in number for one reply', async () => {
    let runs = 0
    const look = testTool('look', () => `${++runs}`)
    const { results } = await callTools([Array.from({ length: 40 }, (_, key) => call('look', { key: `${key}` }))], { tools: [look] })
    expect(runs).toBe(32)
    expect(results[0]?.[32]).toContain('at most 32')
  })

  test('without a unique id gets one', async () => {
    const look = testTool('look', (key) => key)
    const calls = ['', 'x', 'x'].map((id, index) => ({ id, name: 'look', input: { key: `${index}` } }))
    const { model, results } = await callTools([calls], { tools: [look] })
    expect(results).toEqual([['0', '1', '2']])
    const message = model.asked[1]?.prompt.at(-1)
    const ids = message?.role === 'tool' ? message.content.map((part) => ('toolCallId' in part ? part.toolCallId : '')) : []
    expect(new Set(ids).size).toBe(3)
    expect(ids).not.toContain('')
  })

  test('reaches the listener with its result', async () => {
    const heard: TurnPart[] = []
    const look = testTool('look', () => 'seen')
    await callTools([[{ id: 'c1', name: 'look', input: { key: 'a' } }]], { tools: [look] }, { listen: (part) => heard.push(part) })
    expect(heard).toEqual([
      { type: 'tool_call', id: 'c1', name: 'look', input: { key: 'a' } },
      { type: 'tool_result', id: 'c1', name: 'look', output: 'seen', outcome: 'ok' },
      { type: 'text', delta: 'done' },
    ])
  })
})

describe('a tool result', () => {
  test('keeps its beginning and end beyond max_tool_result_chars and reports the cut', async () => {
    const look = testTool('look', () => `${'a'.repeat(5000)}${'z'.repeat(5000)}`)
    const { text } = await callTools([[call('look')]], { tools: [look], agent: { max_tool_result_chars: 300 } })
    expect(text.split('\n').slice(0, 3)).toEqual(['a'.repeat(200), '[… 9700 characters left out …]', 'z'.repeat(100)])
  })

  test('is cut once, and the whole is kept where its session can read on', async () => {
    const written = new Map<string, string>()
    const workspace = { write: async (path: string, bytes: Uint8Array) => void written.set(path, Buffer.from(bytes).toString()) }
    const whole = Array.from({ length: 30_000 }, (_, at) => `row ${at + 1}`).join('\n')
    const tools = [testTool('look', () => whole), testTool('file_read', () => '')]
    const { model, text, books } = await callTools([[call('look')], [call('file_read')]], { tools, workspace }, { session: 'a/b' })
    const [[path, kept] = []] = written
    expect(path).toMatch(/^results\/a_2fb\/look-[0-9a-f]{32}\.txt$/)
    expect(kept).toBe(whole)
    const found = /offset=(\d+)\.\]$/.exec(text ?? '')
    expect(text).toContain(`[The result is in ${path}: read on with file_read path="${path}" offset=`)
    expect(text).toContain(`row ${Number(found?.[1]) - 1}\n[… `)
    // The later request and the stored messages repeat it byte for byte.
    expect(JSON.stringify(model.asked[2]?.prompt)).toContain(JSON.stringify(text).slice(1, -1))
    expect(JSON.stringify(books.histories.get('a/b'))).toContain(JSON.stringify(text).slice(1, -1))
  })

  test('that is too long to be kept is not called whole', async () => {
    const workspace = { write: async () => undefined }
    const { text } = await callTools([[call('look')]], { tools: [testTool('look', () => 'row\n'.repeat(900_000))], workspace })
    expect(text).toContain('[The first 3,145,728 characters of the result are in results/')
  })

  test('is kept for the turn alone without a session', async () => {
    const written: string[] = []
    const workspace = { write: async (path: string) => void written.push(path) }
    const { text } = await callTools([[call('look')]], { tools: [testTool('look', () => 'row\n'.repeat(30_000))], workspace })
    expect(written).toEqual([expect.stringContaining('results/turn_3aturn-1/look-')])
    expect(text).toContain(`[The result is in ${written[0]}.]`)
  })

  test('counts for the share of the client, and says so when the share is used up', async () => {
    const limited = { client: 'device:ann', standing: 'client' } as const
    const shares = new Shares({
      clock: testClock(),
      events: testHost().events,
      sharesOf: () => ({ ...NO_SHARES, attachmentBytes: 200_000 }),
    })
    const files = testHost().workspace
    const setup = { tools: [testTool('look', (key) => 'row\n'.repeat(Number(key)))], workspace: files, shares }
    const ask = (rows: string) => callTools([[call('look', { key: rows })]], setup, { session: 'ann/s', limited })
    expect((await ask('30000')).text).toContain('[The result is in results/ann_2fs/look-')
    const { text } = await ask('60000')
    expect(text).toContain('lines left out')
    expect(text).toContain('[The rest was not kept: the attachments of this person leave no room for it.]')
  })

  test('counts with what linked accounts keep, except in a room, which has files of its own', () => {
    const limited = { client: 'channel:x/bot/ann', person: 'channel:x/bot/ann', standing: 'listed' } as const
    const { events } = testHost()
    const shares = new Shares({ clock: testClock(), events, sharesOf: () => NO_SHARES, besides: () => ['device:ann'] })
    const shareIn = (session: string | null) =>
      fileShareOf({ shares }, { turn: 't', session, caller: limited.client, standing: 'listed', limited } as unknown as CallScope)
    expect(shareIn('channel:x/bot/room/')).toMatchObject({ others: [] })
    expect(shareIn('channel:x/bot/room/ann')).toMatchObject({ others: ['device:ann'] })
    expect(shareIn(null)).toMatchObject({ others: ['device:ann'] })
  })

  test('that cannot be kept is cut all the same', async () => {
    const workspace = { write: () => Promise.reject(new AppError('unavailable', 'The disk is full')) }
    const look = testTool('look', () => 'row\n'.repeat(30_000))
    const { text } = await callTools([[call('look')]], { tools: [look], workspace }, { session: 'a/b' })
    expect(text).toContain('lines left out')
    expect(text).not.toContain('The result')
  })

  test('of a file says where to read on in the file', async () => {
    const read = { ...testTool('file_read', () => 'row\n'.repeat(30_000)), input: v.looseObject({ path: v.string() }) }
    const { text } = await callTools([[call('file_read', { path: 'big.log', offset: 11 })]], { tools: [read] }, { session: 'a/b' })
    expect(text).toMatch(/\[Read on with file_read path="big.log" offset=2011\.\]$/)
  })

  test('has no secret for the model, listeners and the session', async () => {
    const secret = new Secret('the operator’s own value')
    const tools = [
      testTool('look', () => `api_key=9f8e7d6c5b4a and ${secret.reveal()}`),
      testTool('refuses', () => {
        throw new AppError('upstream', 'refused Bearer 0123456789abcdef0123')
      }),
    ]
    const heard: TurnPart[] = []
    const { results, books } = await callTools(
      [[call('look'), call('refuses')]],
      { tools, secrets: () => [secret] },
      { session: 's', listen: (part) => heard.push(part) },
    )
    expect(results[0]).toEqual(['api_key=[redacted] and [redacted]', 'refused Bearer [redacted]'])
    for (const place of [heard, books.ends]) expect(JSON.stringify(place)).not.toMatch(/9f8e7d|operator’s|0123456789abcdef/)
  })

  test('is replaced by a note when it is empty', async () => {
    expect((await callTools([[call('look')]], { tools: [testTool('look', () => '')] })).text).toBe('(no output)')
  })

  test('that is not text is a fault of the tool', async () => {
    const { text } = await callTools([[call('look')]], { tools: [testTool('look', () => undefined as never)] })
    expect(text).toContain('because of an internal error')
  })
})

describe('the policy', () => {
  const ran: string[] = []
  const tools = [
    testTool('look', () => 'ran', 'read'),
    testTool('change', () => 'ran', 'write'),
    testTool('reach', (key) => `ran ${ran.push(key)}`, 'execute'),
    testTool(
      'depends',
      () => 'ran',
      (input) => ((input as { key: string }).key === 'safe' ? 'read' : 'execute'),
    ),
  ]
  const all = [call('look'), call('change'), call('reach'), call('depends', { key: 'safe' }), call('depends', { key: 'x' })]
  const which = (results: readonly string[][]) => results[0]?.map((text) => (text.startsWith('ran') ? 'ran' : 'refused'))

  test('allows only reads at level readonly', async () => {
    const { results, text } = await callTools([all], { tools, policy: { level: 'readonly' } })
    expect(which(results)).toEqual(['ran', 'refused', 'refused', 'ran', 'refused'])
    expect(text).toBe('ran')
    expect(results[0]?.[1]).toContain('level = "readonly"')
  })

  test('asks a person before effects outside at level supervised, and names the setting without one', async () => {
    const { results } = await callTools([all], { tools })
    expect(which(results)).toEqual(['ran', 'ran', 'refused', 'ran', 'refused'])
    expect(results[0]?.[2]).toContain('no person to ask here')
    expect(results[0]?.[2]).toContain('adds "reach" to auto_approve under [security.policy]')
  })

  test('sends no prompt at level full, even with always_ask', async () => {
    const { results } = await callTools([all], { tools, policy: { level: 'full', always_ask: ['*'] } })
    expect(which(results)).toEqual(Array(5).fill('ran'))
  })

  test('lets auto_approve allow tools and always_ask override it', async () => {
    const approved = async (policy: TestAgentOptions['policy']) =>
      which((await callTools([all], { tools, ...(policy && { policy }) })).results)
    expect(await approved({ auto_approve: ['reach'] })).toEqual(['ran', 'ran', 'ran', 'ran', 'refused'])
    expect(await approved({ auto_approve: ['*'] })).toEqual(Array(5).fill('ran'))
    expect(await approved({ auto_approve: ['*'], always_ask: ['look'] })).toEqual(['refused', 'ran', 'ran', 'ran', 'ran'])
  })

  test('takes an approval from the approver of the turn, else of the agent, and only with a name', async () => {
    const asked: ToolApprovalRequest[] = []
    const approver = (answer: boolean) => async (question: ToolApprovalRequest) => {
      asked.push(question)
      return answer && { by: 'somebody', standing: 'operator' as const }
    }
    const input = { key: `token=abcdefgh12345678 ${'x'.repeat(200)}`, approved: true }
    const yes = await callTools([[call('reach', input)]], { tools, approve: approver(false) }, { session: 's', approve: approver(true) })
    expect(yes.text).toMatch(/^ran/)
    expect(asked).toEqual([
      {
        agent: 'main',
        callId: expect.stringMatching(/^1\.1-[0-9a-f]{16}$/),
        tool: 'reach',
        turn: 'turn-1',
        session: 's',
        owner: 'owner',
        inbox: null,
        summary: `key: ${input.key}`,
        callHash: callHash('reach', { key: input.key }),
        decider: 'asker',
        standing: 'operator',
        sources: [],
      },
    ])
    const no = await callTools([[call('reach', input)]], { tools, approve: approver(false) })
    expect(no.text).toContain('did not get it')
    const nameless = await callTools([[call('reach', input)]], { tools, approve: async () => ({ by: '', standing: 'operator' }) })
    expect(nameless.text).toContain('did not get it')
    const broken = await callTools([[call('reach', input)]], { tools, approve: () => Promise.reject(new Error('no channel')) })
    expect(broken.text).toContain('no person to ask here')
    const alone = await callTools([[call('reach', input)]], { tools, approve: async () => undefined })
    expect(alone.text).toContain('no person to ask here')
  })
})

describe('a call that only an operator decides', () => {
  const reach = (decider: Tool['decider'], risk: Tool['risk'] = 'execute'): Tool => ({
    ...testTool('reach', () => 'ran', risk),
    ...(decider && { decider }),
  })
  const from = (standing: Standing) => ({ limited: { client: 'ann', standing } })
  const answered = (standing: Standing | null) => async () => ({ by: 'somebody', standing })

  test.each(STANDINGS)('is asked only of operators for %s', async (standing) => {
    const asked: string[] = []
    const own = async () => {
      asked.push('the client')
      return { by: 'client', standing }
    }
    const operators = async ({ decider }: ToolApprovalRequest) => {
      asked.push(decider)
      return { by: 'cli:me', standing: 'operator' as const }
    }
    for (const decider of ['operator', 'asker'] as const)
      await callTools([[call('reach')]], { tools: [reach(decider)], approve: operators }, { ...from(standing), approve: own })
    const decidesOwn = isAtLeast(standing, 'listed')
    expect(asked).toEqual([standing === 'operator' ? 'the client' : 'operator', decidesOwn ? 'the client' : 'operator'])
  })

  test.each([
    ['whatever the policy approves', { level: 'full', auto_approve: ['*'] }, 'execute'],
    ['also without effects', { level: 'supervised' }, 'read'],
  ] as const)('asks for others, %s', async (_, policy, risk) => {
    const run = async (standing: Standing) =>
      (await callTools([[call('reach')]], { tools: [reach('operator', risk)], policy: { ...policy, auto_approve: ['*'] } }, from(standing)))
        .text
    expect(await run('operator')).toBe('ran')
    expect(await run('client')).toBe(
      'Not run: reach needs the approval of an operator, and none can be asked. An operator names a conversation in [approvals] channels, or pairs a device of the role operator.',
    )
  })

  test('does not run by the word of another, though it was asked about before it needed an operator', async () => {
    let needsOperator = false
    const tool = reach((_, { standing }) => (needsOperator && standing !== 'operator' ? 'operator' : 'asker'))
    const run = async (standing: Standing | null) => {
      needsOperator = false
      const approve = async () => {
        needsOperator = true
        return answered(standing)()
      }
      return (await callTools([[call('reach')]], { tools: [tool], approve }, from('client'))).text
    }
    expect(await run('client')).toBe('Not run: reach needs the approval of an operator and did not get it.')
    expect(await run(null)).toContain('did not get it')
    expect(await run('operator')).toBe('ran')
  })

  test('is asked of operators again while it runs', async () => {
    const tool: Tool = { ...reach('operator'), run: async (_, { ask }) => `${await ask?.({ question: 'go on?' })}` }
    const asked: string[] = []
    const approve = async ({ callId, decider }: ToolApprovalRequest) => {
      asked.push(`${callId.includes('.1-') && callId.endsWith('.1') ? 'while it runs' : 'before'}: ${decider}`)
      return { by: 'cli:me', standing: 'operator' as const }
    }
    expect((await callTools([[call('reach')]], { tools: [tool], approve }, from('listed'))).text).toBe('cli:me')
    expect(asked).toEqual(['before: operator', 'while it runs: operator'])
  })
})

test('a call that only stops something runs at every level, without approval and any number of times', async () => {
  const given: unknown[] = []
  const drive = defineTool({
    name: 'drive',
    description: 'Moves, or stops.',
    input: v.object({ action: v.picklist(['go', 'stop']), speed: v.optional(v.pipe(v.number(), v.minValue(1))) }),
    risk: ({ action }) => (action === 'stop' ? 'read' : 'execute'),
    egress: false,
    untrusted: false,
    haltOf: (raw) => ((raw as { action?: unknown } | null)?.action === 'stop' ? { action: 'stop' } : undefined),
    run: async (input) => `ran ${given.push(input)}`,
  })
  for (const level of ['readonly', 'supervised', 'full'] as const) {
    const rounds = Array.from({ length: 5 }, () => [call('drive', { action: 'stop', speed: 0 })])
    await callTools(rounds, { tools: [drive], policy: { level, always_ask: ['*'] } })
    expect(given.splice(0)).toEqual(Array(5).fill({ action: 'stop' }))
  }
  const { text } = await callTools([[call('drive', { action: 'go' })]], { tools: [drive], policy: { always_ask: ['drive'] } })
  expect(text).toContain('no person to ask here')
})

describe('a call that would fail with an approval', () => {
  const input = v.object({ key: v.optional(v.string(), 'none') })
  const reach = (more: Partial<Tool>): Tool => ({ ...testTool('reach', () => 'ran', 'execute'), input, ...more })
  const missing = async () => {
    throw new AppError('unavailable', 'No device is connected')
  }
  const asking = async (tool: Tool, policy: TestAgentOptions['policy'] = {}) => {
    const asked: string[] = []
    const approve = async ({ tool: name }: ToolApprovalRequest) => {
      asked.push(name)
      return { by: 'cli:me', standing: 'operator' as const }
    }
    const { text, logs } = await callTools([[call('reach')]], { tools: [tool], approve, policy })
    return { asked, text, logs }
  }

  test('is refused before a person is asked', async () => {
    expect(await asking(reach({ precheck: missing }))).toMatchObject({ asked: [], text: 'No device is connected' })
    expect(await asking(reach({ precheck: missing, alwaysAsks: true }), { level: 'full' })).toMatchObject({ asked: [] })
    expect((await asking(reach({ available: () => false }))).text).toContain('reach is not available')
  })

  test('passes when nothing is missing, and runs when no person is asked', async () => {
    expect(await asking(reach({ precheck: async () => undefined }))).toMatchObject({ asked: ['reach'], text: 'ran' })
    expect(await asking(reach({ precheck: missing }), { level: 'full' })).toMatchObject({ asked: [], text: 'ran' })
  })

  test('is judged again after the check, which may have waited for the sandbox', async () => {
    const asked: string[] = []
    const check = (policy: NonNullable<TestAgentOptions['policy']>) => {
      let isConfined = false
      const precheck = async () => {
        isConfined = true
      }
      const tool = reach({ precheck, decider: () => (isConfined ? 'asker' : 'operator') })
      const approve = async ({ decider }: ToolApprovalRequest) => {
        asked.push(decider)
        return { by: 'device:d', standing: 'client' as const }
      }
      const limited = { client: 'device:d', standing: 'client' } as const
      return callTools([[call('reach')]], { tools: [tool], approve, policy }, { limited })
    }
    expect(await check({})).toMatchObject({ text: 'ran' })
    expect(asked).toEqual(['asker'])
    expect(await check({ level: 'full' })).toMatchObject({ text: 'ran' })
    expect(asked).toEqual(['asker'])
  })

  test('logs the fault of a failing check', async () => {
    const broken = async () => {
      throw new TypeError('undefined is no function')
    }
    const { asked, text, logs } = await asking(reach({ precheck: broken }))
    expect({ asked, text }).toEqual({ asked: [], text: expect.stringContaining('because of an internal error') })
    expect(logs).toMatchObject([{ level: 'error', message: 'tool failed' }])
  })
})

describe('a call is judged right before it runs', () => {
  /** `look` only reads until `change` has run, like a path that becomes a link. */
  const stateful = () => {
    const ran: string[] = []
    return {
      ran,
      tools: [
        testTool('change', (key) => `ran ${ran.push(key)}`, 'write'),
        testTool(
          'look',
          (key) => `ran ${ran.push(key)}`,
          () => (ran.includes('plant') ? 'execute' : 'read'),
        ),
      ],
    }
  }

  test('after the calls before it in the same reply', async () => {
    const { ran, tools } = stateful()
    const { results } = await callTools([[call('change', { key: 'plant' }), call('look', { key: 'out' })]], { tools })
    expect(ran).toEqual(['plant'])
    expect(results[0]?.[1]).toContain('no person to ask here')
  })

  test('and again after an approval, by the policy of that moment', async () => {
    const { ran, tools } = stateful()
    const policy: { level: 'supervised' | 'readonly'; always_ask: string[] } = { level: 'supervised', always_ask: ['change'] }
    const { text } = await callTools([[call('change')]], {
      tools,
      policy,
      approve: async () => {
        policy.level = 'readonly'
        return { by: 'cli:me', standing: 'operator' as const }
      },
    })
    expect(text).toContain('level = "readonly"')
    expect(ran).toEqual([])
  })

  test('and only with the input that was shown', async () => {
    const { ran, tools } = stateful()
    const heard: TurnPart[] = []
    const changing = async () => {
      for (const part of heard) if (part.type === 'tool_call') Object.assign(part.input as object, { key: 'another' })
      return { by: 'cli:me', standing: 'operator' as const }
    }
    const asked = { tools, policy: { always_ask: ['change'] } }
    const { text } = await callTools(
      [[call('change', { key: 'shown' })]],
      { ...asked, approve: changing },
      { listen: (part) => void heard.push(part) },
    )
    expect(text).toContain('did not get it')
    expect(ran).toEqual([])
    const { text: unchanged } = await callTools([[call('change', { key: 'shown' })]], {
      ...asked,
      approve: async () => ({ by: 'cli:me', standing: 'operator' as const }),
    })
    expect([unchanged, ran]).toEqual(['ran 1', ['shown']])
  })

  test('and stores earlier results before a person is asked', async () => {
    const { tools } = stateful()
    const books = memoryBooks()
    const kept: unknown[] = []
    const { agent } = testAgent({
      books,
      models: [scriptedModel([{ calls: [call('change', { key: 'plant' }), call('look')] }, { text: 'done' }])],
      tools,
      approve: async () => {
        kept.push(...books.checkpoints.values())
        return false
      },
    })
    await agent.accept(request('go', { session: 's' }))
    await agent.ended('turn-1')
    expect(JSON.stringify(kept)).toContain('ran 1')
    expect(JSON.stringify(kept)).not.toContain('may or may not')
  })
})

describe('tools that always ask', () => {
  /** Two tools that always ask, one that does not, and who approved each call of them. */
  const alwaysAsking = () => {
    const given: unknown[] = []
    const approve: Tool = {
      ...testTool('approve', () => 'ran', 'read'),
      alwaysAsks: true,
      run: async (_input, { approvedBy }) => `ran ${given.push(approvedBy)}`,
    }
    const { alwaysAsks: _, ...unasked } = approve
    const tools: Tool[] = [approve, { ...approve, name: 'change', risk: 'write' }]
    return { given, unasked, tools }
  }

  test('need an approval at every level', async () => {
    const { given, tools } = alwaysAsking()
    for (const policy of [{ level: 'full' }, { level: 'supervised', auto_approve: ['*'] }] as const) {
      const { text } = await callTools([[call('approve')]], { tools, policy })
      expect(text).toBe("Not run: approve needs a person's approval and there is no person to ask here. It never runs without an approval.")
      const refused = await callTools([[call('approve')]], { tools, policy, approve: async () => false })
      expect(refused.text).toContain('did not get it')
    }
    expect(given).toEqual([])
  })

  test('receive the person who approved, if any', async () => {
    const { given, unasked, tools } = alwaysAsking()
    const somebody = async () => ({ by: 'roomchat:alice', standing: 'operator' as const })
    await callTools([[call('approve')]], { tools, policy: { level: 'full' }, approve: somebody })
    await callTools([[call('approve')]], { tools: [unasked], approve: somebody })
    expect(given).toEqual(['roomchat:alice', undefined])
  })

  test('may decide by the input, also when auto_approve lists the tool', async () => {
    const { unasked } = alwaysAsking()
    const tool: Tool = { ...unasked, risk: 'execute', alwaysAsks: (input) => (input as { key: string }).key === 'odd' }
    const policy = { auto_approve: ['approve'] }
    expect((await callTools([[call('approve', { key: 'plain' })]], { tools: [tool], policy })).text).toMatch(/^ran/)
    expect((await callTools([[call('approve', { key: 'odd' })]], { tools: [tool], policy })).text).toContain(
      'With this input it never runs without an approval',
    )
  })

  test('are refused at level readonly when they have effects', async () => {
    const { tools } = alwaysAsking()
    const somebody = async () => ({ by: 'somebody', standing: 'operator' as const })
    const { results } = await callTools([[call('approve'), call('change')]], { tools, policy: { level: 'readonly' }, approve: somebody })
    expect(results[0]?.map((text) => text.slice(0, 7))).toEqual(['ran 1', 'Not run'])
  })
})

describe('a turn that may call some tools only', () => {
  const tools = ['look', 'peek', 'stare'].map((name) => testTool(name, () => 'ran'))

  test('is offered these tools, and a call of another tool gets their names', async () => {
    const { model, results } = await callTools([[call('peek'), call('look'), call('stares')]], { tools }, { tools: ['look', 'stare'] })
    expect(model.asked[0]?.tools?.map(({ name }) => name)).toEqual(['look', 'stare'])
    expect(results[0]).toEqual([
      'Not run: peek may not be called here. Allowed tools: look, stare.',
      'ran',
      'There is no tool "stares". Similar names: stare.',
    ])
  })

  test('may have no tool', async () => {
    const { model, text } = await callTools([[call('peek')]], { tools }, { tools: [] })
    expect(model.asked[0]).not.toHaveProperty('tools')
    expect(model.asked[0]?.prompt[0]?.content).not.toContain('Use tools')
    expect(text).toContain('No tool may')
  })

  test('does not change the tools of other turns', async () => {
    const model = scriptedModel([{ text: 'done' }])
    const { agent } = testAgent({ models: [model], tools })
    await agent.run(request('a', { tools: ['look'] }))
    await agent.run(request('b'))
    expect(model.asked.map((options) => options.tools?.length)).toEqual([1, 3])
  })
})

describe('a model that repeats itself', () => {
  test('has its third identical call refused in any order of keys', async () => {
    let runs = 0
    const tool = defineTool({
      name: 'look',
      description: '',
      input: v.object({ a: v.optional(v.number()), b: v.optional(v.number()) }),
      risk: 'read',
      egress: false,
      untrusted: false,
      run: async () => `${++runs}`,
    })
    const replies = [
      { a: 1, b: 2 },
      { b: 2, a: 1 },
      { a: 1, b: 2 },
      { a: 1, b: 3 },
    ].map((input) => [call('look', input)])
    const { results } = await callTools(replies, { tools: [tool] })
    expect(results.map(([text]) => text?.slice(0, 7))).toEqual(['1', '2', 'Not run', '3'])
  })

  test('may make a call again after each new one, and not in a circle', async () => {
    const edit = (key: string) => [call('edit', { key })]
    const check = [call('check', { key: 'all' })]
    const tools = [testTool('edit', () => 'edited'), testTool('check', () => 'failed')]
    const work = [check, edit('a'), check, edit('b'), check, edit('c'), check]
    expect((await callTools(work, { tools })).results.map(([text]) => text)).not.toContainEqual(expect.stringContaining('Not run'))
    const circle = [edit('a'), check, edit('a'), check, edit('a'), check, edit('a'), check]
    const { results } = await callTools(circle, { tools })
    expect(results.filter(([text]) => text?.startsWith('Not run'))).toHaveLength(3)
  })

  test('may make a call that waits any number of times', async () => {
    const wait: Tool = { ...testTool('wait', () => 'still runs'), mayRepeat: true }
    const { results } = await callTools(
      Array.from({ length: 5 }, () => [call('wait')]),
      { tools: [wait] },
    )
    expect(results.map(([text]) => text)).toEqual(Array.from({ length: 5 }, () => 'still runs'))
  })

  test('is asked for a summary without tools after max_iterations', async () => {
    let key = 0
    const model = scriptedModel([
      ({ toolChoice }) => (toolChoice?.type === 'none' ? { text: 'so far' } : { calls: [call('look', { key: `${++key}` })] }),
    ])
    const { agent, books } = testAgent({ models: [model], tools: [testTool('look', () => 'seen')], agent: { max_iterations: 3 } })
    await expect(agent.run(request('go', { session: 's' }))).resolves.toMatchObject({ text: 'so far' })
    expect(model.asked.length).toBe(4)
    expect(JSON.stringify(model.asked[3]?.prompt.at(-1))).toContain('all 3 steps')
    expect(
      books.histories
        .get('s')
        ?.map(({ role }) => role)
        .join(' '),
    ).toBe('user assistant tool assistant tool assistant tool assistant')
    expect(JSON.stringify(books.histories.get('s'))).not.toContain('all 3 steps')
  })

  test('is stopped by max_turn_tokens, with a fixed text when it gives no summary', async () => {
    const model = scriptedModel([{ calls: [call('look')], usage: { input: 600, output: 500 } }])
    const { agent } = testAgent({ models: [model], tools: [testTool('look', () => 'seen')], agent: { max_turn_tokens: 1000 } })
    const result = await agent.run(request('go'))
    expect(model.asked.length).toBe(2)
    expect(result.text).toBe(
      'The turn was stopped: all 1000 tokens of this turn are used up. A message such as "continue" goes on from here.',
    )
    expect(result.usage).toMatchObject({ inputTokens: 1200, outputTokens: 1000 })
  })

  test('may read more than max_turn_tokens from the prompt cache', async () => {
    let key = 0
    const model = scriptedModel([
      () => (++key > 20 ? { text: 'done' } : { calls: [call('look', { key: `${key}` })], usage: { input: 600, cached: 590, output: 5 } }),
    ])
    const { agent } = testAgent({ models: [model], tools: [testTool('look', () => 'seen')], agent: { max_turn_tokens: 1000 } })
    expect((await agent.run(request('go'))).text).toBe('done')
  })
})

test('a session stores tool calls, but no thinking and provider metadata', async () => {
  const model = scriptedModel([
    { thinking: 'hm', calls: [call('look', { key: 'a' })] },
    { thinking: 'ah', text: 'done' },
  ])
  const { agent, books } = testAgent({ models: [model], tools: [testTool('look', () => 'seen')] })
  await agent.run(request('go', { session: 's' }))
  expect(JSON.stringify(model.asked[1]?.prompt)).toContain('hm')
  expect(books.histories.get('s')).toEqual([
    { role: 'user', content: [{ type: 'text', text: 'go' }] },
    { role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'call-1-0', toolName: 'look', input: { key: 'a' } }] },
    {
      role: 'tool',
      content: [{ type: 'tool-result', toolCallId: 'call-1-0', toolName: 'look', output: { type: 'text', value: 'seen' } }],
    },
    { role: 'assistant', content: [{ type: 'text', text: 'done' }] },
  ])
})

test('a tool is notified when a newer message waits in its session', async () => {
  const given: (AbortSignal | undefined)[] = []
  const gate = Promise.withResolvers<void>()
  const tool = defineTool({
    name: 'look',
    description: '',
    input: v.object({}),
    risk: 'read',
    egress: false,
    untrusted: false,
    async run(_input, { superseded }) {
      given.push(superseded)
      await gate.promise
      return 'seen'
    },
  })
  const step = { calls: [call('look')] }
  const { agent } = testAgent({ models: [scriptedModel([step, { text: 'done' }, { text: 'done' }])], tools: [tool] })
  const first = agent.run(request('go', { session: 's' }))
  await until(() => given.length === 1)
  expect(given[0]?.aborted).toBe(false)
  const second = agent.run(request('stop', { session: 's' }))
  expect(given[0]?.aborted).toBe(true)
  gate.resolve()
  await Promise.all([first, second])
})

test('a tool receives client, session and a signal that ends with the turn', async () => {
  let given: unknown
  const tool = defineTool({
    name: 'look',
    description: '',
    input: v.object({}),
    risk: 'read',
    egress: false,
    untrusted: false,
    run: async (_input, context) => {
      given = context
      return 'seen'
    },
  })
  const asked = request('go', { session: 's' })
  const model = scriptedModel([{ calls: [call('look')] }, { text: 'done' }])
  await testAgent({ models: [model], tools: [tool] }).agent.run(asked)
  expect(given).toMatchObject({ client: asked.client, session: 's', turn: 'turn-1', trace: { traceId: asked.trace.traceId } })
  expect(given).toHaveProperty('signal', expect.any(AbortSignal))
})
