/** What a turn is cancelled for when those who asked for it, or may, want it no longer. */
import { AppError } from '@sluice/sdk'

export const aborted = (turnId: string): AppError => new AppError('aborted', 'The turn was aborted', { fields: { turn_id: turnId } })
