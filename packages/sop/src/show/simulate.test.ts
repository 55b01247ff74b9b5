import { AppError, type SopStep } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import type { SopDefinition } from '../definition/definition.ts'
import { type ModelLimits, readEvent, simulate } from './simulate.ts'

const step = (number: number, rest: Partial<SopStep> = {}): SopStep => ({
  number,
  title: `Step ${number}`,
  body: 'x'.repeat(394),
  tools: null,
  requiresConfirmation: false,
  kind: 'execute',
  input: null,
  output: null,
  ...rest,
})

const deploy: SopDefinition = {
  name: 'deploy',
  description: '',
  version: '0.1.0',
  agent: 'main',
  priority: 'normal',
  mode: 'supervised',
  cooldownSecs: 0,
  maxConcurrent: 1,
  maxWaiting: 100,
  countWaiting: true,
  triggers: [
    { type: 'webhook', path: '/deploy', condition: '$.env == "prod"' },
    { type: 'webhook', path: '/release', condition: null },
    { type: 'mqtt', topic: 'ci/+/done', condition: '> 5' },
  ],
  steps: [step(1, { tools: ['shell'] }), step(2, { kind: 'checkpoint' }), step(3, { requiresConfirmation: true })],
  folder: '/sops/deploy',
}

const MODEL: ModelLimits = { callsMax: 11, tokensMax: 200_000 }
const run = (event: unknown, definition = deploy, model = MODEL) => {
  const [first] = simulate([definition], readEvent(event), model)
  if (!first) throw new Error('nothing was simulated')
  return first
}
const whys = (event: unknown) => run(event).triggers.map(({ why }) => why)

describe('a simulation', () => {
  test('names the matching triggers, and the reason for each of the others', () => {
    expect(run({ source: 'webhook', topic: '/deploy', payload: { env: 'prod' } })).toMatchObject({
      sop: 'deploy',
      starts: true,
      held: null,
      triggers: [
        { trigger: 'webhook:/deploy', condition: '$.env == "prod"', matches: true, why: null },
        { trigger: 'webhook:/release', condition: null, matches: false, why: 'the topic is "/deploy"' },
        { trigger: 'mqtt:ci/+/done', condition: '> 5', matches: false, why: 'the event is of kind webhook' },
      ],
    })
    const condition = 'its condition does not hold: '
    expect(whys({ source: 'webhook', topic: '/deploy' })[0]).toBe(`${condition}the event has no payload`)
    expect(whys({ source: 'webhook', topic: '/deploy', payload: 'env=prod' })[0]).toBe(`${condition}the payload is not JSON`)
    expect(whys({ source: 'webhook', topic: '/deploy', payload: {} })[0]).toBe(`${condition}the payload has no value at that path`)
    expect(whys({ source: 'webhook', topic: '/deploy', payload: { env: 'dev' } })[0]).toBe(
      `${condition}the value in the payload does not fit the comparison`,
    )
    expect(whys({ source: 'mqtt', topic: 'ci/main/done', payload: 'six' })[2]).toBe(
      `${condition}the value in the payload cannot be compared`,
    )
    expect(run({ source: 'mqtt', topic: 'ci/main/done', payload: 6 }).starts).toBe(true)
    expect(run({ source: 'webhook', topic: '/other' }).starts).toBe(false)
  })

  test('says that a procedure can never start', () => {
    expect(run({ source: 'webhook', topic: '/release' }, { ...deploy, maxConcurrent: 0 })).toMatchObject({
      starts: false,
      held: 'its max_concurrent is 0',
    })
  })

  test('lists the steps with their gates and their executors', () => {
    const walk = (definition: SopDefinition) =>
      run({ source: 'webhook', topic: '/release' }, definition).steps.map(({ number, waits, by, tools }) => [number, waits, by, tools])
    expect(walk(deploy)).toEqual([
      [1, 'mode', 'agent', ['shell']],
      [2, 'checkpoint', 'nobody', null],
      [3, 'confirmation', 'agent', null],
    ])
    expect(walk({ ...deploy, mode: 'deterministic' })).toEqual([
      [1, null, 'tool', ['shell']],
      [2, 'checkpoint', 'nobody', null],
      [3, null, 'tool', null],
    ])
  })

  test('estimates the model calls and, with a price, their cost', () => {
    const event = { source: 'webhook', topic: '/release', payload: 'y'.repeat(400) }
    expect(run(event).cost).toEqual({ modelCalls: { min: 2, max: 22 }, usd: null })
    // Two steps with 400 characters each, and 400 characters of payload for each step, are 400 tokens.
    const { cost } = run(event, deploy, { ...MODEL, price: { input: 5, output: 20 } })
    expect(cost.usd?.min).toBeCloseTo(0.002, 10)
    expect(cost.usd?.max).toBe(8)
    expect(run(event, { ...deploy, mode: 'deterministic' }).cost.modelCalls).toEqual({ min: 0, max: 0 })
  })

  test('does not change its arguments', () => {
    const frozen = Object.freeze({ ...deploy, steps: Object.freeze(deploy.steps), triggers: Object.freeze(deploy.triggers) })
    const event = { source: 'webhook', topic: '/deploy', payload: { env: 'prod' } }
    expect(run(event, frozen)).toEqual(run(event, frozen))
  })

  test.each<[unknown, string]>([
    [null, 'This is not an event'],
    ['webhook', 'This is not an event'],
    [[], '`source` is invalid'],
    [{}, '`source` is invalid'],
    [{ source: 'timer', topic: 'x' }, '`source` is invalid'],
    [{ source: 'webhook' }, '`topic` is invalid'],
    [{ source: 'webhook', topic: '/x', paylod: 1 }, '`paylod` is invalid'],
  ])('refuses a malformed event: %j', (json, message) => {
    expect(() => readEvent(json)).toThrow(AppError)
    expect(() => readEvent(json)).toThrow(message)
  })
})
