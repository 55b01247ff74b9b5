import { isAtLeast, type Standing } from '@sluice/sdk'

/**
 * Whether a turn reads a writer's words without a frame. The words of strangers, and of people of a lower standing than the person of the
 * turn, are framed.
 */
export const isVouchedFor = (standing: Standing, reader: Standing): boolean => isAtLeast(standing, 'listed') && isAtLeast(standing, reader)
