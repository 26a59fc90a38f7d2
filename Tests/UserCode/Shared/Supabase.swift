import Foundation
import Supabase

let supabaseURL = URL(string: "https://your-project-ref.supabase.co")!
let supabasePublishableKey = "your-publishable-key"

let supabase = SupabaseClient(supabaseURL: supabaseURL, supabaseKey: supabasePublishableKey)
