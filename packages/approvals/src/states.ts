/** The states of approvals, for lists and filters. */
export const APPROVAL_STATES = ['pending', 'approved', 'rejected', 'expired', 'cancelled'] as const
