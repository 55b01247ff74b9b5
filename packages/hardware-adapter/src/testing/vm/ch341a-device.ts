/** The program that serves a simulated CH341A as a virtual USB device. */
import { ch341aChip } from '../ch341a-chip.ts'
import { serveUsbFunction } from './serve-usb-function.ts'

await serveUsbFunction({ vendor: '1a86', product: '5512', answer: ch341aChip().answer })
