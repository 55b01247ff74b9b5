import { expect, test } from 'vitest'
import { nodeProblem } from './node-version.ts'

test.each(['24.7.0', '24.10.1', '25.0.0', '26.1.0'])('Node %s can run Sluice', (version) => {
  expect(nodeProblem(version)).toBeUndefined()
})

test.each(['18.20.0', '22.19.0', '24.6.9'])('Node %s cannot, and the sentence names the version that can', (version) => {
  expect(nodeProblem(version)).toBe(`this is Node ${version}; Sluice needs Node 24.7 or newer`)
})
