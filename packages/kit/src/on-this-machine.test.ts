import { expect, test } from 'vitest'
import { hasProgram, missingPackages } from './on-this-machine.ts'

test('a program is found by its name in the usual folders', () => {
  expect([hasProgram('sh'), hasProgram('no-such-program-here')]).toEqual([true, false])
})

test('packages that cannot be resolved are named with the one command that installs them', () => {
  const { url } = import.meta
  expect(missingPackages(['vitest'], url)).toBeUndefined()
  expect(missingPackages(['vitest', 'no-such-a'], url)).toBe(
    'the package no-such-a is not installed; install it next to Sluice: npm install no-such-a',
  )
  expect(missingPackages(['no-such-a', 'no-such-b'], url)).toBe(
    'the packages no-such-a, no-such-b are not installed; install them next to Sluice: npm install no-such-a no-such-b',
  )
})
