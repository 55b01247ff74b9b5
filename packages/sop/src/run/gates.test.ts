import type { SopMode, SopPriority, SopStep } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { gateBefore } from './gates.ts'

const step = (number: number, rest: Partial<SopStep> = {}) => ({ number, kind: 'execute' as const, requiresConfirmation: false, ...rest })

const MODES: readonly SopMode[] = ['auto', 'supervised', 'step_by_step', 'priority_based', 'deterministic']
const PRIORITIES: readonly SopPriority[] = ['low', 'normal', 'high', 'critical']

describe('gateBefore', () => {
  test.each<[SopMode, SopPriority, string | null, string | null]>([
    ['auto', 'low', null, null],
    ['auto', 'critical', null, null],
    ['supervised', 'low', 'mode', null],
    ['supervised', 'critical', 'mode', null],
    ['step_by_step', 'low', 'mode', 'mode'],
    ['step_by_step', 'critical', 'mode', 'mode'],
    ['priority_based', 'low', 'mode', null],
    ['priority_based', 'normal', 'mode', null],
    ['priority_based', 'high', null, null],
    ['priority_based', 'critical', null, null],
    ['deterministic', 'low', null, null],
    ['deterministic', 'critical', null, null],
  ])('mode %s, priority %s: first step %s, later steps %s', (mode, priority, first, later) => {
    expect(gateBefore(mode, priority, step(1))).toBe(first)
    expect(gateBefore(mode, priority, step(2))).toBe(later)
  })

  test.each(MODES)('makes a checkpoint wait in every mode: %s', (mode) => {
    for (const priority of PRIORITIES) {
      expect(gateBefore(mode, priority, step(2, { kind: 'checkpoint', requiresConfirmation: true }))).toBe('checkpoint')
    }
  })

  test.each(MODES.filter((mode) => mode !== 'deterministic'))('asks for a confirmation at every priority: %s', (mode) => {
    for (const priority of PRIORITIES) expect(gateBefore(mode, priority, step(2, { requiresConfirmation: true }))).toBe('confirmation')
  })
})
