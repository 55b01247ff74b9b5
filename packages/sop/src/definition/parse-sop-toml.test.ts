import { problemLine } from '@sluice/config'
import { describe, expect, test } from 'vitest'
import { parseSopToml } from './parse-sop-toml.ts'

const read = (source: string) => parseSopToml(source, 'SOP.toml', Date.UTC(2026, 2, 1))
const HEAD = '[sop]\nname = "deploy"\ndescription = "Ship it"\n'

test('absent keys have their defaults', async () => {
  expect(await read(HEAD)).toEqual({
    value: {
      sop: {
        name: 'deploy',
        description: 'Ship it',
        version: '0.1.0',
        agent: 'main',
        priority: 'normal',
        cooldown_secs: 0,
        max_concurrent: 1,
        deterministic: false,
        max_waiting: 100,
        count_waiting: true,
      },
      triggers: [],
    },
    problems: [],
  })
})

test('reads every field and every type of trigger', async () => {
  const source = `[sop]
name = "Deploy v2"
description = "Ship it"
version = "2.0"
priority = "critical"
execution_mode = "priority_based"
cooldown_secs = 300
max_concurrent = 2
deterministic = true

[[triggers]]
type = "manual"
[[triggers]]
type = "webhook"
path = "/deploy"
[[triggers]]
type = "webhook"
path = "/hooks/git%2Fmain%25"
condition = '$.ref == "refs/heads/main"'
[[triggers]]
type = "cron"
expression = "0 9 * * MON-FRI"
[[triggers]]
type = "cron"
expression = "0 0 9 * * *"
timezone = "Europe/Berlin"
[[triggers]]
type = "mqtt"
topic = "home/+/temp"
condition = " "
[[triggers]]
type = "peripheral"
board = "nucleo"
signal = "button"
condition = "> 5"
`
  const { value, problems } = await read(source)
  expect(problems).toEqual([])
  expect(value?.sop).toEqual({
    name: 'Deploy v2',
    description: 'Ship it',
    version: '2.0',
    agent: 'main',
    priority: 'critical',
    execution_mode: 'priority_based',
    cooldown_secs: 300,
    max_concurrent: 2,
    deterministic: true,
    max_waiting: 100,
    count_waiting: true,
  })
  expect(value?.triggers).toEqual([
    { type: 'manual' },
    { type: 'webhook', path: '/deploy', condition: null },
    { type: 'webhook', path: '/hooks/git%2Fmain%25', condition: '$.ref == "refs/heads/main"' },
    { type: 'cron', expression: '0 9 * * MON-FRI', timezone: 'UTC' },
    { type: 'cron', expression: '0 0 9 * * *', timezone: 'Europe/Berlin' },
    { type: 'mqtt', topic: 'home/+/temp', condition: null },
    { type: 'peripheral', board: 'nucleo', signal: 'button', condition: '> 5' },
  ])
})

describe('every problem has its position', () => {
  test.each<[string, string[]]>([
    ['[sop]\nname = "a"\n', ['1:2: `sop.description` is missing; it must be a string']],
    [`${HEAD}prority = "low"\n`, ['4:1: `sop.prority` is not a known key; did you mean `priority`?']],
    [`${HEAD}priority = "urgent"\n`, ['4:12: `sop.priority` must be one of "low", "normal", "high", "critical"; got "urgent"']],
    [
      `${HEAD}execution_mode = "Auto"\n`,
      ['4:18: `sop.execution_mode` must be one of "auto", "supervised", "step_by_step", "priority_based", "deterministic"; got "Auto"'],
    ],
    [`${HEAD}cooldown_secs = -1\n`, ['4:17: `sop.cooldown_secs` must be a whole number between 0 and 1000000000; got -1']],
    ['[sop]\nname = ""\ndescription = ""\n', ['2:8: `sop.name` must be a string that is not empty; got ""']],
    [
      '[sop]\nname = "../x"\ndescription = ""\n',
      ['2:8: `sop.name`: a name may only have letters, digits, spaces, dots, dashes and underscores'],
    ],
    [
      `${HEAD}[[triggers]]\ntype = "timer"\n`,
      ['5:8: `triggers[0].type` must be one of "manual", "webhook", "cron", "mqtt", "peripheral"; got "timer"'],
    ],
    [`${HEAD}[[triggers]]\ntype = "webhook"\n`, ['4:3: `triggers[0].path` is missing; it must be a string that is not empty']],
    [`${HEAD}[[triggers]]\ntype = "manual"\npath = "/x"\n`, ['6:1: `triggers[0].path` is not allowed here']],
    [`${HEAD}[[trigger]]\ntype = "manual"\n`, ['4:3: `trigger` is not a known key; did you mean `triggers`?']],
    [
      `${HEAD}[[triggers]]\ntype = "webhook"\npath = "deploy"\n`,
      ['6:8: `triggers[0].path`: a path must begin with a slash and have no space, ? or #'],
    ],
    [
      `${HEAD}[[triggers]]\ntype = "webhook"\npath = "/caf%C3%A9"\n`,
      ['6:8: `triggers[0].path`: requests match the decoded path, without \\ and dot segments; write /café'],
    ],
    [
      `${HEAD}[[triggers]]\ntype = "webhook"\npath = ":x"\n`,
      ['6:8: `triggers[0].path`: a path must begin with a slash and have no space, ? or #'],
    ],
    [
      `${HEAD}[[triggers]]\ntype = "webhook"\npath = "/b%20c"\n`,
      ['6:8: `triggers[0].path`: a path must begin with a slash and have no space, ? or #'],
    ],
    [
      `${HEAD}[[triggers]]\ntype = "webhook"\npath = "/a/../b"\n`,
      ['6:8: `triggers[0].path`: requests match the decoded path, without \\ and dot segments; write /b'],
    ],
    [
      `${HEAD}[[triggers]]\ntype = "webhook"\npath = '/a\\b'\n`,
      ['6:8: `triggers[0].path`: requests match the decoded path, without \\ and dot segments; write /a/b'],
    ],
    [
      `${HEAD}[[triggers]]\ntype = "webhook"\npath = "/x"\ncondition = "$.a = 5"\n`,
      ['7:13: `triggers[0].condition`: a condition looks like `$.path.to.value >= 5` or `>= 5`, with one of >= <= != == > <'],
    ],
    [
      `${HEAD}[[triggers]]\ntype = "cron"\nexpression = "0 25 * * *"\ntimezone = "Mars/Base"\n`,
      [
        '6:14: `triggers[0].expression`: invalid value for hour: 25',
        '7:12: `triggers[0].timezone`: this time zone is unknown; write a name such as Europe/Berlin',
      ],
    ],
    [
      `${HEAD}[[triggers]]\ntype = "mqtt"\ntopic = "a/#/b"\n`,
      ['6:9: `triggers[0].topic`: # stands for all further levels, so it must be the last one'],
    ],
    [
      `${HEAD}[[triggers]]\ntype = "peripheral"\nboard = "a/b"\nsignal = ""\n`,
      [
        '6:9: `triggers[0].board`: the name of a board must not contain a slash',
        '7:10: `triggers[0].signal` must be a string that is not empty; got ""',
      ],
    ],
  ])('%j', async (source, expected) => {
    const { value, problems } = await read(source)
    expect(value).toBeUndefined()
    expect(problems.map(problemLine)).toEqual(expected.map((line) => `SOP.toml:${line}`))
  })
})
