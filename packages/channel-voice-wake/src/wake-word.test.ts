import { describe, expect, test } from 'vitest'
import { commandAfter, wordsIn } from './wake-word.ts'

describe('commandAfter', () => {
  test.each([
    ['hey sluice', 'Hey Sluice, turn on the light.', 'turn on the light.'],
    ['hey sluice', 'HEY, SLUICE! Turn on the light.', 'Turn on the light.'],
    ['Hey, Sluice!', 'um hey sluice turn it off', 'turn it off'],
    ['hey sluice', 'hey   sluice…', ''],
    ['hey sluice', 'Hey Sluice', ''],
    ['hey sluice', 'The weather is nice today.', undefined],
    ['hey sluice', 'hey you, Sluice', undefined],
    ['hey sluice', '', undefined],
    ['ordinateur', 'Ordinateur, éteins la lumière', 'éteins la lumière'],
    ['café', 'CAFE\u0301: one please', 'one please'],
    ['cafe', 'Café, s’il vous plaît', 's’il vous plaît'],
    ['straße', 'Straße 5 bitte', '5 bitte'],
    ['你好', '你好,開燈', '開燈'],
    ['привет', 'ПРИВЕТ, включи свет', 'включи свет'],
    ['ﬁve', 'Five lights', 'lights'],
    ['ada', 'Canada is cold today', 'is cold today'],
    ['你好', '說你好開燈', '開燈'],
    ['hey sluice', 'hey sluice hey sluice stop', 'hey sluice stop'],
    ['sluice', 'the sluices are open', 'are open'],
  ])('of %j in %j is %j', (wakeWord, transcript, command) => {
    expect(commandAfter(wakeWord, transcript, false)).toBe(command)
  })

  test.each([
    ['ada', 'Canada is cold today', undefined],
    ['max', 'The maximum speed is 90', undefined],
    ['hey sluice', 'They sluice the canal every day', undefined],
    ['hey sluice', 'hey sluices open the door', undefined],
    ['hey sluice', 'Hey, Sluice! Open the door.', 'Open the door.'],
    ['ada', 'Canada, Ada: open the door', 'open the door'],
    ['你好', '說你好開燈', '開燈'],
  ])('as a whole word of %j in %j is %j', (wakeWord, transcript, command) => {
    expect(commandAfter(wakeWord, transcript, true)).toBe(command)
  })

  test('of a wake word without letters is never found', () => {
    expect(commandAfter('…', 'anything …')).toBeUndefined()
  })
})

test('wordsIn compares letters and digits only', () => {
  expect(wordsIn(' Hé, Y2K?  ')).toEqual(['he', 'y2k'])
  expect(wordsIn('!?')).toEqual([])
})
