/** The one door to the library that speaks to Chromium; it stays outside the bundle and is loaded with the first page. */
import { AppError } from '@sluice/sdk'

export const loadPlaywright = () =>
  import('playwright-core').catch((cause: unknown) => {
    throw new AppError('unavailable', 'playwright-core is not installed beside this build: npm install playwright-core', { cause })
  })
