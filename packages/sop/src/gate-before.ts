/** Which steps wait for a person before they run (§4.3): the one place where execution modes are told apart. */
import type { SopGate, SopMode, SopPriority, SopStep } from '@sluice/sdk'

/** Why a run waits before this step, or null: it goes on. Of several reasons the first of checkpoint, confirmation, mode. */
export function gateBefore(
  mode: SopMode,
  priority: SopPriority,
  step: Pick<SopStep, 'number' | 'kind' | 'requiresConfirmation'>,
): Exclude<SopGate['why'], 'again'> | null {
  if (step.kind === 'checkpoint') return 'checkpoint'
  if (mode === 'deterministic') return null
  if (step.requiresConfirmation) return 'confirmation'
  return modeWaits(mode, priority, step.number === 1) ? 'mode' : null
}

function modeWaits(mode: Exclude<SopMode, 'deterministic'>, priority: SopPriority, isFirst: boolean): boolean {
  switch (mode) {
    case 'auto':
      return false
    case 'supervised':
      return isFirst
    case 'step_by_step':
      return true
    case 'priority_based':
      return isFirst && priority !== 'high' && priority !== 'critical'
  }
}
