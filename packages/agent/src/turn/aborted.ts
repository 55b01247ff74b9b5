/** The error that ends a turn when its caller or an operator aborts it. */
import { AppError } from '@sluice/sdk'

export const aborted = (turnId: string): AppError => new AppError('aborted', 'The turn was aborted', { fields: { turn_id: turnId } })
