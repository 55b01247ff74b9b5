import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { operatorsOf, readConfig } from '@sluice/config'
import { scratch } from '@sluice/qa/daemons/bundle'
import { defineFeature } from '@sluice/sdk'
import * as v from 'valibot'
import { expect, onTestFinished, test } from 'vitest'
import { createOutput } from '../output.ts'
import { askOwner } from './ask-owner.ts'

const chat = (name: string) =>
  defineFeature({
    id: `x-${name}`,
    section: { path: `channels_config.${name}`, schema: v.object({ token: v.string() }) },
    build: () => ({}),
  })

/** Asks for the owner on the channels of a configuration, of which `three` has no section, and answers in turn. */
async function ask(toml: string, answers: readonly string[]) {
  const { dir, dispose } = scratch(toml)
  onTestFinished(dispose)
  const source = { configFile: join(dir, 'config.toml'), dataDir: dir, features: ['one', 'two', 'three'].map(chat), env: {} }
  const text = { out: '' }
  const streams = { stdout: { write: (data: unknown) => (text.out += data) }, stderr: { write: (data: string) => (text.out += data) } }
  const context = { ...source, version: '0', profile: 'test', args: [], options: {}, json: false, out: createOutput(streams, {}) }
  const asked: string[] = []
  const left = [...answers]
  const dialogue = {
    ask: async (question: string) => {
      asked.push(question)
      return left.shift() ?? ''
    },
  }
  await askOwner(context as never, dialogue)
  const config = await readConfig(source)
  const file = readFileSync(source.configFile, 'utf8')
  return { asked, out: text.out, file, operators: (channel: string) => operatorsOf(config, channel) }
}

const ONE = '[channels_config.one]\ntoken = "t"\n'
const TWO = '[channels_config.two]\ntoken = "t"\n'

test('asks for the owner on each configured channel without operators', async () => {
  const { asked, operators, out } = await ask(`${ONE}${TWO}operators = ["bob"]\n`, ['ann'])
  expect(asked).toEqual(['Your own id on one, to decide as an operator there (empty: skip)'])
  expect([operators('one'), operators('two')]).toEqual([['ann'], ['bob']])
  expect(out).toContain('The allowlist of the channel must name it too.')
})

test('writes nothing for an empty answer, and refuses *', async () => {
  const { asked, file, out } = await ask(`${ONE}${TWO}`, ['', '*'])
  expect(asked).toHaveLength(2)
  expect(file).toBe(`${ONE}${TWO}`)
  expect(out).toContain('must name a sender')
})
