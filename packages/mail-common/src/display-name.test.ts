import { expect, test } from 'vitest'
import { displayName } from './display-name.ts'

test.each<[header: string, name: string]>([
  ['Ada Lovelace <ada@example.com>', 'Ada Lovelace'],
  ['"Lovelace, Ada" <ada@example.com>', 'Lovelace, Ada'],
  ['"Ada \\"the\\" L" <ada@example.com>', 'Ada "the" L'],
  ['=?utf-8?B?xIFkYQ==?= <ada@example.com>', 'āda'],
  ['=?utf-8?Q?J=C3=BCrgen?= =?utf-8?Q?_M?= <j@example.com>', 'Jürgen M'],
  ['ada@example.com', ''],
  ['<ada@example.com>', ''],
  ['', ''],
])('displayName(%j) is %j', (header, name) => {
  expect(displayName([header])).toBe(name)
})
