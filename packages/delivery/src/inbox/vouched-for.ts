import { isAtLeast, type Standing } from '@sluice/sdk'

/**
 * Whether a turn reads the words of somebody without a frame. The words of strangers, and of people who stand lower than the person of the
 * turn, are framed.
 */
export const isVouchedFor = (standing: Standing, reader: Standing): boolean => isAtLeast(standing, 'listed') && isAtLeast(standing, reader)
