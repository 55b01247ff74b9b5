import { allOptions } from '@sluice/cli/command'
import * as sdk from '@sluice/sdk'
import { expect, test } from 'vitest'
import { collectCommands, collectPackages } from './collect.ts'
import { compareSurface } from './compare.ts'

test('lists the exports of a package as they are when it is loaded, and its types', () => {
  const names = Object.entries(collectPackages()).filter(([item]) => item.startsWith('@sluice/sdk '))
  const values = names.filter(([, { types }]) => types?.includes('value')).map(([item]) => item.replace('@sluice/sdk ', ''))
  expect(values.toSorted()).toEqual(Object.keys(sdk).toSorted())
  expect(Object.fromEntries(names)).toMatchObject({ '@sluice/sdk Feature': { types: ['type'] } })
})

test('a removed option, an option that wants a value and a new required argument are changes of a command', () => {
  const summary = 'Does it'
  const option = { type: 'boolean', help: '' } as const
  const before = collectCommands([{ name: 'do', summary, usage: '<a> [b]', options: { now: option, quiet: option } }])
  const now = collectCommands([{ name: 'do', summary, usage: '<a> <b>', options: { now: { ...option, type: 'string', value: '<when>' } } }])
  expect(Object.keys(before)).toHaveLength(1 + Object.keys(allOptions({})).length + 1 + 2)
  expect(compareSurface(before, now, 'in')).toEqual([
    { item: 'do --quiet', change: 'was removed' },
    { item: 'do', change: 'no longer takes 1 arguments' },
    { item: 'do --now', change: 'no longer takes a switch' },
  ])
})
