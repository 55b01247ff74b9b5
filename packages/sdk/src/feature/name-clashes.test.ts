import { describe, expect, test } from 'vitest'
import { defineFeature, type Feature, type Parts } from './feature.ts'
import { checkFeatures, checkParts } from './name-clashes.ts'

const feature = (id: Feature['id'], more: Partial<Feature> = {}): Feature => ({ ...defineFeature({ id, build: () => ({}) }), ...more })
const built = (id: Feature['id'], parts: object) => ({ feature: feature(id), parts: parts as Parts })
const row = (names: object): Partial<Feature> => ({ row: { kind: 'tool', summary: 'A test', ...names } })
const section = (path: string): Partial<Feature> => ({ section: { path, schema: {} as never } })

describe('a build is refused', () => {
  test('that lists a feature twice', () => {
    const twice = [feature('channel-telegram'), feature('channel-telegram')]
    expect(() => checkFeatures(twice)).toThrow("the build has the feature 'channel-telegram' twice; list it once")
  })

  test.each([
    ["tool 'roll'", row({ tools: ['roll'] })],
    ["route 'POST /roll'", row({ routes: ['POST /roll'] })],
    ["command 'roll dice'", row({ commands: ['roll dice'] })],
    ["provider kind 'dice'", row({ kinds: ['dice'] })],
    ["store backend 'dice'", { storeBackend: { name: 'dice' } as never }],
    ["section 'channels_config.dice'", section('channels_config.dice')],
  ])('in which two features bring the %s', (name, more) => {
    expect(() => checkFeatures([feature('x-one', more), feature('x-two', more)])).toThrow(
      `the features 'x-one' and 'x-two' both bring the ${name}; leave one of them out of the build, or give it another name`,
    )
  })

  test('in which a feature takes the channel section of one of the catalogue', () => {
    const features = [
      feature('channel-telegram', section('channels_config.telegram')),
      feature('x-own', section('channels_config.telegram')),
    ]
    expect(() => checkFeatures(features)).toThrow("'channel-telegram' and 'x-own' both bring the section 'channels_config.telegram'")
  })
})

test('features of the catalogue may share a section', () => {
  const path = section('channels_config.chatapp')
  expect(() => checkFeatures([feature('channel-chatapp', path), feature('channel-chatapp-web', path)])).not.toThrow()
})

describe('built features are refused', () => {
  test.each([
    ["channel 'dice'", { channels: [{ name: 'dice' }] }],
    ["tool 'dice'", { tools: [{ name: 'dice' }] }],
    ["sandbox backend 'dice'", { sandboxes: [{ name: 'dice' }] }],
    ["observability backend 'dice'", { observers: [{ name: 'dice' }] }],
    ["command 'dice'", { commands: [{ name: 'dice' }] }],
    ["route 'GET /dice'", { sockets: [{ path: '/dice' }] }],
    ["provider kind 'dice'", { providers: [{ kinds: ['dice'] }] }],
  ])('of which two bring the %s', (name, parts) => {
    expect(() => checkParts([built('x-one', parts), built('x-two', parts)])).toThrow(`'x-one' and 'x-two' both bring the ${name};`)
  })

  test('of which one brings a channel twice', () => {
    const parts = { channels: [{ name: 'dice' }, { name: 'dice' }] }
    expect(() => checkParts([built('x-one', parts)])).toThrow("the feature 'x-one' brings the channel 'dice' twice")
  })
})

test('a channel, a tool and a sandbox may have one name', () => {
  const parts = [{ channels: [{ name: 'dice' }] }, { tools: [{ name: 'dice' }] }, { sandboxes: [{ name: 'dice' }] }]
  expect(() => checkParts(parts.map((one, index) => built(`x-${index}`, one)))).not.toThrow()
})

test('a tool of a feature whose tools are named elsewhere gives way and is not refused', () => {
  const plugin = { feature: feature('x-plugin', row({ namesItsTools: true })), parts: { tools: [{ name: 'dice' }] } as unknown as Parts }
  expect(() => checkParts([built('x-one', { tools: [{ name: 'dice' }] }), plugin])).not.toThrow()
})
