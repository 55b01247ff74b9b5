import { expect, test } from 'vitest'
import { expectRefused } from './expect-refused.ts'
import { SCHEMES } from './schemes.ts'

test('there are schemes', () => expect(SCHEMES.size).toBeGreaterThan(10))

test.each([...SCHEMES.keys()])('%s: accepts none of 5,000 mutations', (name) => expectRefused(name, 5000))
