/** The texts of help: their width, their groups, and that no command is missing. */
import { expect, test } from 'vitest'
import { COMMANDS } from './command-descriptions.ts'
import { featureCommands } from './feature-commands.ts'
import { commandHelp, familyHelp, GROUPS, overview, shortHelp } from './help.ts'

const ALL = [...COMMANDS, ...featureCommands([])]
const firstWords = [...new Set(ALL.map(({ name }) => name.split(' ')[0] ?? ''))]

test('every text fits 80 columns', () => {
  const texts = [
    shortHelp(ALL, '10.20.30'),
    overview(ALL, '10.20.30'),
    ...ALL.map(commandHelp),
    ...firstWords.map((word) =>
      familyHelp(
        word,
        ALL.filter(({ name }) => name.startsWith(`${word} `)),
      ),
    ),
  ]
  expect(texts.flatMap((text) => text.split('\n')).filter((line) => line.length > 80)).toEqual([])
})

test('the overview has every command, and its groups name each first word once', () => {
  const grouped = GROUPS.flatMap(({ words }) => words)
  expect(new Set(grouped).size).toBe(grouped.length)
  expect(grouped.filter((word) => !firstWords.includes(word))).toEqual([])
  const text = overview(ALL, '1').replaceAll(/\s+/g, ' ')
  for (const { name } of ALL) {
    const [first = '', second] = name.split(' ')
    expect(text).toMatch(second === undefined ? ` ${first} ` : new RegExp(` ${first} (?:[^;]*; also: )?[^:]*\\b${second}\\b`))
  }
})

test('the short help fits a screen', () => {
  expect(shortHelp(ALL, '1').split('\n').length).toBeLessThanOrEqual(24)
})
