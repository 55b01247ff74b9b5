import { isAtLeast, type Standing } from '@sluice/sdk'

/** Whether a turn reads words without a frame: not those of strangers, and not those of people who stand lower than its person. */
export const isVouchedFor = (standing: Standing, reader: Standing): boolean => isAtLeast(standing, 'listed') && isAtLeast(standing, reader)
