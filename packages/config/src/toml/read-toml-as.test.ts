import * as v from 'valibot'
import { expect, test } from 'vitest'
import { problemLine } from './problem.ts'
import { readTomlAs } from './read-toml-as.ts'

const text = v.pipe(v.string(), v.minLength(1))
const schema = v.object({
  plan: v.object({ name: text, retries: v.optional(v.pipe(v.number(), v.integer(), v.minValue(0)), 2) }),
  starts: v.optional(
    v.array(v.variant('type', [v.strictObject({ type: v.literal('manual') }), v.strictObject({ type: v.literal('web'), path: text })])),
    [],
  ),
})
const read = (source: string) => readTomlAs(schema, source, 'plan.toml')
const lines = async (source: string) => {
  const { value, problems } = await read(source)
  expect(value).toBeUndefined()
  return problems.map(problemLine)
}

test('a valid file returns its values with defaults', async () => {
  expect(await read('[plan]\nname = "a"\n[[starts]]\ntype = "web"\npath = "/x"\n')).toEqual({
    value: { plan: { name: 'a', retries: 2 }, starts: [{ type: 'web', path: '/x' }] },
    problems: [],
  })
})

test.each<[string, string[]]>([
  ['plan = [', ['plan.toml:1:9: this is not valid TOML: a value is missing after the equals sign']],
  ['', ['plan.toml: `plan` is missing; it must be a table']],
  ['[plan]\nretries = 1\n', ['plan.toml:1:2: `plan.name` is missing; it must be a string that is not empty']],
  ['[plan]\nnaem = "a"\nname = "a"\n', ['plan.toml:2:1: `plan.naem` is not a known key; did you mean `name`?']],
  ['[plan]\nname = "a"\nretries = -1\n', ['plan.toml:3:11: `plan.retries` must be a whole number of at least 0; got -1']],
  ['[plan]\nname = "a"\n[plann]\nx = 1\n', ['plan.toml:3:2: `plann` is not a known key; did you mean `plan`?']],
  ['[plan]\nname = "a"\n\n[[starts]]\ntype = "webb"\n', ['plan.toml:5:8: `starts[0].type` must be one of "manual", "web"; got "webb"']],
  ['[plan]\nname = "a"\n[[starts]]\ntype = "manual"\npath = "/x"\n', ['plan.toml:5:1: `starts[0].path` is not allowed here']],
  [
    '[[starts]]\ntype = "web"\npaht = "/x"\n[plan]\nname = ""\n',
    [
      'plan.toml:1:3: `starts[0].path` is missing; it must be a string that is not empty',
      'plan.toml:3:1: `starts[0].paht` is not a known key; did you mean `path`?',
      'plan.toml:5:8: `plan.name` must be a string that is not empty; got ""',
    ],
  ],
])('every mistake is reported with its position: %j', async (source, expected) => {
  expect(await lines(source)).toEqual(expected)
})

test('a key with a reserved name is reported as unknown, not dropped', async () => {
  expect(await lines('[plan]\nname = "a"\n[plan.__proto__]\nx = 1\n')).toEqual(['plan.toml:3:2: `plan.__proto__` is not a known key'])
})
