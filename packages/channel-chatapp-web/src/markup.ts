/** What WhatsApp shows, by marks in the text: https://faq.whatsapp.com/539178204879377 */
import { writeWhatsapp } from '@sluice/kit/written-marks'
import type { Markup } from '@sluice/sdk'

export const MARKUP: Markup = { shows: ['bold', 'italic', 'strike', 'code', 'pre', 'quote'], write: writeWhatsapp }
